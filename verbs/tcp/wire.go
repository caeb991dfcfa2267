//go:build linux

package tcp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the limits of the wire format.
const (
	maxPayload = 1 << 20 // bytes behind one frame header
	maxMessage = 1 << 30 // bytes of one request
	maxHeader  = 48      // bytes of the longest frame header
)

// kind is in the low five bits of a frame.
type kind uint8

const (
	kindWrite       kind = iota + 1 // payload into the target's memory
	kindWriteImm                    // likewise; the last one consumes a receive
	kindSend                        // payload into the target's next receive
	kindRead                        // requests length bytes
	kindAtomic                      // one atomic operation
	kindAccumulate                  // one atomic operation on each of several elements
	kindWriteBlocks                 // payload into blocks of the target's memory
	kindReadBlocks                  // requests blocks of the target's memory
	kindAbort                       // ends a request after some of its frames have left
	kindAck                         // requests applied, receives posted
	kindNak                         // a request was refused
	kindData                        // response to the oldest READ
	kindValue                       // response to the oldest atomic
	kindHello                       // the first frame of a connection
	kindOpen                        // the dialer requests a stream
	kindOpened                      // the acceptor grants it
	kindProof                       // the dialer has both secrets of the stream
	kindEnd                         // this end has left the stream
	kinds
)

// These are the offsets of a frame's fields. The package comment shows the layout.
const (
	offKind    = 0 // and flags
	offLength  = 1 // payload bytes
	offOp      = 1 // kindAtomic: operation; kindNak: status
	offWidth   = 2 // kindAtomic: bytes
	offStream  = 4
	offAddr    = 8
	offKeyHi   = 16
	offKeyLo   = 24
	offImm     = 32 // kindWriteImm
	offSize    = 32 // kindRead: bytes wanted
	offOperand = 32 // kindAtomic
	offCompare = 40 // kindAtomic
	offEach    = 32 // kindAccumulate: operation, width, runs
	offRuns    = 32 // kindWriteBlocks, kindReadBlocks: runs
	offBytes   = 36 // kindAccumulate: bytes of the elements; kindWriteBlocks, kindReadBlocks: of the blocks
	offSeq     = 8  // kindAck, kindNak
	offCredits = 16 // kindAck
	offValue   = 8  // kindValue
)

// These are the flags of a frame.
const (
	flagLast    = 1 << iota // the request, or the response, ends here
	flagWantAck             // an acknowledgement is wanted
	flagReply               // kindAtomic, kindAccumulate: the old values are wanted
)

// kindBits is the number of bits of the kind in a frame's first byte. Those of the flags
// are above.
const kindBits = 5

var headerSizes = [kinds]int{
	kindWrite: 32, kindWriteImm: 36, kindSend: 8, kindRead: 36, kindAtomic: 48, kindAccumulate: 40, kindWriteBlocks: 40, kindReadBlocks: 40,
	kindAbort: 8, kindAck: 24, kindNak: 16, kindData: 8, kindValue: 16,
	kindHello: 48, kindOpen: 48, kindOpened: 40, kindProof: 40, kindEnd: 8,
}

// maxLengths bounds the three bytes at offLength, by kind.
var maxLengths = [kinds]uint32{
	kindWrite: maxPayload, kindWriteImm: maxPayload, kindSend: maxPayload, kindData: maxPayload,
	kindAtomic: math.MaxUint16, kindAccumulate: driver.MaxAccumulate, kindWriteBlocks: driver.MaxBlocks, kindReadBlocks: driver.MaxBlocks, kindNak: math.MaxUint8,
}

// frame is a decoded header. Its kind decides which fields are meaningful.
type frame struct {
	kind     kind
	flags    uint8
	op       uint8
	width    uint8
	stream   uint32
	length   uint32
	addr     uint64
	key      driver.Key
	imm      uint32
	operand  uint64
	compare  uint64
	seq      uint64
	credits  uint64
	value    uint64
	runs     uint32 // kindAccumulate, kindWriteBlocks, kindReadBlocks
	bytes    uint32 // of the elements or blocks
	bodySize int    // payload bytes that follow the header
}

func (f *frame) last() bool { return f.flags&flagLast != 0 }

// decode reads one header from the front of b and returns its size, 0 if b is too
// short. It accepts only headers that encode writes.
func (f *frame) decode(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	k := kind(b[offKind] & (1<<kindBits - 1))
	if k == 0 || k >= kinds {
		return 0, fmt.Errorf("%w: frame kind %d", errProtocol, k)
	}
	size := headerSizes[k]
	if len(b) < size {
		return 0, nil
	}
	word := binary.LittleEndian.Uint32(b)
	f.kind, f.flags, f.length = k, uint8(word)>>kindBits, word>>8
	f.stream = binary.LittleEndian.Uint32(b[offStream:])
	if f.length > maxLengths[k] {
		return 0, fmt.Errorf("%w: length %d in a frame of kind %d", errProtocol, f.length, k)
	}
	f.bodySize = int(f.length)
	switch k {
	case kindWrite, kindWriteImm, kindRead, kindAtomic, kindAccumulate, kindWriteBlocks, kindReadBlocks:
		if err := f.decodeRequest(b); err != nil {
			return 0, err
		}
	case kindAck:
		f.seq = binary.LittleEndian.Uint64(b[offSeq:])
		f.credits = binary.LittleEndian.Uint64(b[offCredits:])
	case kindNak:
		f.op, f.length, f.bodySize = b[offOp], 0, 0
		f.seq = binary.LittleEndian.Uint64(b[offSeq:])
	case kindValue:
		f.value = binary.LittleEndian.Uint64(b[offValue:])
	}
	return size, nil
}

// decodeRequest decodes the header of a request behind its first eight bytes, and checks its numbers.
func (f *frame) decodeRequest(b []byte) error {
	f.addr = binary.LittleEndian.Uint64(b[offAddr:])
	f.key.Hi = binary.LittleEndian.Uint64(b[offKeyHi:])
	f.key.Lo = binary.LittleEndian.Uint64(b[offKeyLo:])
	switch f.kind {
	case kindRead:
		if f.length = binary.LittleEndian.Uint32(b[offSize:]); f.length > maxMessage {
			return fmt.Errorf("%w: READ of %d bytes", errProtocol, f.length)
		}
	case kindWriteImm:
		f.imm = binary.LittleEndian.Uint32(b[offImm:])
	case kindAtomic:
		f.op, f.width, f.length, f.bodySize = b[offOp], b[offWidth], 0, 0
		f.operand = binary.LittleEndian.Uint64(b[offOperand:])
		f.compare = binary.LittleEndian.Uint64(b[offCompare:])
	case kindAccumulate:
		return f.decodeAccumulate(b)
	case kindWriteBlocks, kindReadBlocks:
		return f.decodeBlocks(b)
	}
	return nil
}

// encode writes the header to b, which holds headerSizes[f.kind] bytes.
func (f *frame) encode(b []byte) {
	length := f.length
	switch f.kind {
	case kindRead:
		length = 0
	case kindAtomic, kindNak:
		length = uint32(f.op) | uint32(f.width)<<8
	}
	binary.LittleEndian.PutUint32(b, uint32(f.kind)|uint32(f.flags)<<kindBits|length<<8)
	binary.LittleEndian.PutUint32(b[offStream:], f.stream)
	switch f.kind {
	case kindWrite, kindWriteImm, kindRead, kindAtomic, kindAccumulate, kindWriteBlocks, kindReadBlocks:
		f.encodeRequest(b)
	case kindAck:
		binary.LittleEndian.PutUint64(b[offSeq:], f.seq)
		binary.LittleEndian.PutUint64(b[offCredits:], f.credits)
	case kindNak:
		binary.LittleEndian.PutUint64(b[offSeq:], f.seq)
	case kindValue:
		binary.LittleEndian.PutUint64(b[offValue:], f.value)
	}
}

// encodeRequest is the inverse of decodeRequest. b has the size of the header.
func (f *frame) encodeRequest(b []byte) {
	binary.LittleEndian.PutUint64(b[offAddr:], f.addr)
	binary.LittleEndian.PutUint64(b[offKeyHi:], f.key.Hi)
	binary.LittleEndian.PutUint64(b[offKeyLo:], f.key.Lo)
	switch f.kind {
	case kindRead:
		binary.LittleEndian.PutUint32(b[offSize:], f.length)
	case kindWriteImm:
		binary.LittleEndian.PutUint32(b[offImm:], f.imm)
	case kindAtomic:
		binary.LittleEndian.PutUint64(b[offOperand:], f.operand)
		binary.LittleEndian.PutUint64(b[offCompare:], f.compare)
	case kindAccumulate:
		binary.LittleEndian.PutUint32(b[offEach:], uint32(f.op)|uint32(f.width)<<8|f.runs<<16)
		binary.LittleEndian.PutUint32(b[offBytes:], f.bytes)
	case kindWriteBlocks, kindReadBlocks:
		binary.LittleEndian.PutUint32(b[offRuns:], f.runs)
		binary.LittleEndian.PutUint32(b[offBytes:], f.bytes)
	}
}
