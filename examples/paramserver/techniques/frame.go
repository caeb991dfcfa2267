package techniques

import (
	"encoding/binary"
	"math"
)

// A frame is a key and the elements of its tensor, little-endian:
//
//	0   key, 8 bytes
//	8   elements, 4 bytes each
const header = 8

// encode copies a tensor into a frame, and counts the copy.
func (p *conns) encode(frame []byte, key int, tensor []float32) {
	binary.LittleEndian.PutUint64(frame, uint64(key))
	for i, v := range tensor {
		binary.LittleEndian.PutUint32(frame[header+4*i:], math.Float32bits(v))
	}
	p.copied.Add(uint64(4 * len(tensor)))
}

// decode copies a tensor out of a frame, and counts the copy. It returns the key.
func (p *conns) decode(tensor []float32, frame []byte) (key int) {
	for i := range tensor {
		tensor[i] = math.Float32frombits(binary.LittleEndian.Uint32(frame[header+4*i:]))
	}
	p.copied.Add(uint64(4 * len(tensor)))
	return int(binary.LittleEndian.Uint64(frame))
}
