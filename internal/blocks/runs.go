package blocks

import "encoding/binary"

// RunSize is the length of a run on the wire, in little-endian numbers:
//
//	0   8      12     16
//	at  block  count  stride
const RunSize = 24

const (
	offBlock  = 8
	offCount  = 12
	offStride = 16
)

// Span returns the bytes of all blocks, and the places from their first byte to behind their
// last. It is not ok if a run has no block or blocks without bytes, or if a number is beyond
// what memory can hold.
func Span(runs []Run) (size, from, to int, ok bool) {
	from, to = maxSpan, -maxSpan
	for i := range runs {
		r := &runs[i]
		way, fits := product(r.Count-1, r.Stride)
		bytes, small := product(r.Block, r.Count)
		if r.Block <= 0 || r.Count <= 0 || !fits || !small || size > maxSpan || magnitude(r.At) > maxSpan {
			return 0, 0, 0, false
		}
		size += bytes
		from, to = min(from, r.At, r.At+way), max(to, r.At+r.Block, r.At+way+r.Block)
	}
	return size, min(from, to), to, true
}

// Aligned reports whether all blocks of runs are whole elements of width bytes, at multiples of width.
func Aligned(runs []Run, width int) bool {
	for _, r := range runs {
		if r.At%width != 0 || r.Block%width != 0 || r.Count > 1 && r.Stride%width != 0 {
			return false
		}
	}
	return true
}

// Place returns the place of byte i of the blocks, and the number of bytes from there to the end of its
// block. Precondition: the blocks have more bytes.
func Place(runs []Run, i int) (at, left int) {
	for _, r := range runs {
		if bytes := r.Block * r.Count; i >= bytes {
			i -= bytes
			continue
		}
		behind := i % r.Block
		return r.At + i/r.Block*r.Stride + behind, r.Block - behind
	}
	return 0, 0
}

// Join adds r to runs. It makes r a part of the last run if the blocks of both lie at one stride.
func Join(runs []Run, r Run) []Run {
	if len(runs) == 0 {
		return append(runs, r)
	}
	last := &runs[len(runs)-1]
	stride := last.Stride
	if last.Count == 1 {
		stride = r.At - last.At
	}
	if r.Block != last.Block || r.At != last.At+last.Count*stride || r.Count > 1 && r.Stride != stride {
		return append(runs, r)
	}
	last.Stride, last.Count = stride, last.Count+r.Count
	return runs
}

// Pack copies the blocks of runs to packed, one behind the other. The first byte of src is at
// place from.
func Pack(packed, src []byte, from int, runs []Run) {
	at := 0
	for _, r := range runs {
		Copy(packed, Run{At: at, Block: r.Block, Count: r.Count, Stride: r.Block}, src, r.behind(from))
		at += r.Block * r.Count
	}
}

// Unpack copies packed to the blocks of runs. The first byte of dst is at place from.
func Unpack(dst []byte, from int, runs []Run, packed []byte) {
	at := 0
	for _, r := range runs {
		Copy(dst, r.behind(from), packed, Run{At: at, Block: r.Block, Count: r.Count, Stride: r.Block})
		at += r.Block * r.Count
	}
}

// behind returns r as it counts from a place.
func (r Run) behind(place int) Run {
	r.At -= place
	return r
}

// PutRuns writes runs to b, which holds RunSize bytes for each. Block and Count of a run fit 32
// bits.
func PutRuns(b []byte, runs []Run) {
	for i := range runs {
		r, b := &runs[i], b[i*RunSize:(i+1)*RunSize]
		binary.LittleEndian.PutUint64(b, uint64(r.At))
		binary.LittleEndian.PutUint32(b[offBlock:], uint32(r.Block))
		binary.LittleEndian.PutUint32(b[offCount:], uint32(r.Count))
		binary.LittleEndian.PutUint64(b[offStride:], uint64(r.Stride))
	}
}

// AppendRuns adds the runs of b to runs. It takes whole runs only and checks none of them: Span
// does.
func AppendRuns(runs []Run, b []byte) []Run {
	for ; len(b) >= RunSize; b = b[RunSize:] {
		runs = append(runs, Run{At: int(binary.LittleEndian.Uint64(b)), Block: int(binary.LittleEndian.Uint32(b[offBlock:])),
			Count: int(binary.LittleEndian.Uint32(b[offCount:])), Stride: int(binary.LittleEndian.Uint64(b[offStride:]))})
	}
	return runs
}
