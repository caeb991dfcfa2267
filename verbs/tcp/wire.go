package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the limits of the wire format.
const (
	maxPayload = 1 << 20  // bytes behind one frame header
	maxMessage = 1 << 30  // bytes of one request
	maxHeader  = joinSize // the longest frame header
)

// kind is the first byte of a frame.
type kind uint8

const (
	kindWrite    kind = iota + 1 // payload into the target's memory
	kindWriteImm                 // likewise; the last one consumes a receive
	kindSend                     // payload into the target's next receive
	kindRead                     // requests length bytes
	kindAtomic                   // one atomic operation
	kindAbort                    // ends a request after some of its frames have left
	kindAck                      // requests applied, receives posted
	kindNak                      // a request was refused
	kindData                     // response to the oldest READ
	kindValue                    // response to the oldest atomic
	kindJoin                     // requests the connection's second stream
	kindJoined                   // grants it
	kindEnd                      // this end has left the stream
	kinds
)

// These are the offsets of a frame's fields. The package comment shows the layout.
const (
	offKind    = 0
	offFlags   = 1
	offOp      = 2 // kindAtomic: operation; kindNak: status
	offWidth   = 3 // kindAtomic: bytes
	offLength  = 4 // payload bytes; kindRead: bytes wanted
	offAddr    = 8
	offKeyHi   = 16
	offKeyLo   = 24
	offImm     = 32 // kindWriteImm
	offOperand = 32 // kindAtomic
	offCompare = 40 // kindAtomic
	offSeq     = 8  // kindAck, kindNak
	offCredits = 16 // kindAck
	offValue   = 8  // kindValue
)

// These are the flags of a frame.
const (
	flagLast   = 1 << iota // the request, or the response, ends here
	flagAsk                // an acknowledgement is wanted
	flagReply              // kindAtomic: the old value is wanted
	flagSecond             // of the connection's second stream
	flagsKnown
)

var headerSizes = [kinds]int{
	kindWrite: 32, kindWriteImm: 36, kindSend: 8, kindRead: 32, kindAtomic: 48,
	kindAbort: 8, kindAck: 24, kindNak: 16, kindData: 8, kindValue: 16,
	kindJoin: joinSize, kindJoined: joinedSize, kindEnd: 8,
}

// maxLengths bounds the value at offLength, by kind.
var maxLengths = [kinds]uint32{
	kindWrite: maxPayload, kindWriteImm: maxPayload, kindSend: maxPayload,
	kindRead: maxMessage, kindData: maxPayload,
}

// frame is a decoded header. Its kind decides which fields are meaningful.
type frame struct {
	kind     kind
	stream   uint8
	flags    uint8 // all but flagSecond, which is in stream
	op       uint8
	width    uint8
	length   uint32
	addr     uint64
	key      driver.Key
	imm      uint32
	operand  uint64
	compare  uint64
	seq      uint64
	credits  uint64
	value    uint64
	bodySize int // payload bytes that follow the header
}

func (f *frame) last() bool { return f.flags&flagLast != 0 }

// decode reads one header from the front of b and returns its size, 0 if b is too
// short. It accepts only headers that encode writes.
func (f *frame) decode(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	k := kind(b[offKind])
	if k == 0 || k >= kinds {
		return 0, fmt.Errorf("%w: frame kind %d", errProtocol, k)
	}
	size := headerSizes[k]
	if len(b) < size {
		return 0, nil
	}
	f.kind, f.flags, f.op, f.width = k, b[offFlags], b[offOp], b[offWidth]
	f.length = binary.LittleEndian.Uint32(b[offLength:])
	if f.flags >= flagsKnown || f.length > maxLengths[k] {
		return 0, fmt.Errorf("%w: flags %#x, length %d in a frame of kind %d", errProtocol, f.flags, f.length, k)
	}
	f.stream, f.flags = f.flags/flagSecond, f.flags&^flagSecond
	f.bodySize = int(f.length)
	switch k {
	case kindWrite, kindWriteImm, kindRead, kindAtomic:
		f.decodeRequest(b)
	case kindAck:
		f.seq = binary.LittleEndian.Uint64(b[offSeq:])
		f.credits = binary.LittleEndian.Uint64(b[offCredits:])
	case kindNak:
		f.seq = binary.LittleEndian.Uint64(b[offSeq:])
	case kindValue:
		f.value = binary.LittleEndian.Uint64(b[offValue:])
	}
	return size, nil
}

func (f *frame) decodeRequest(b []byte) {
	f.addr = binary.LittleEndian.Uint64(b[offAddr:])
	f.key.Hi = binary.LittleEndian.Uint64(b[offKeyHi:])
	f.key.Lo = binary.LittleEndian.Uint64(b[offKeyLo:])
	switch f.kind {
	case kindRead:
		f.bodySize = 0
	case kindWriteImm:
		f.imm = binary.LittleEndian.Uint32(b[offImm:])
	case kindAtomic:
		f.operand = binary.LittleEndian.Uint64(b[offOperand:])
		f.compare = binary.LittleEndian.Uint64(b[offCompare:])
	}
}

// encode writes the header to b, which holds headerSizes[f.kind] bytes.
func (f *frame) encode(b []byte) {
	b[offKind], b[offFlags], b[offOp], b[offWidth] = byte(f.kind), f.flags|f.stream*flagSecond, f.op, f.width
	binary.LittleEndian.PutUint32(b[offLength:], f.length)
	switch f.kind {
	case kindWrite, kindWriteImm, kindRead, kindAtomic:
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

func (f *frame) encodeRequest(b []byte) {
	binary.LittleEndian.PutUint64(b[offAddr:], f.addr)
	binary.LittleEndian.PutUint64(b[offKeyHi:], f.key.Hi)
	binary.LittleEndian.PutUint64(b[offKeyLo:], f.key.Lo)
	switch f.kind {
	case kindWriteImm:
		binary.LittleEndian.PutUint32(b[offImm:], f.imm)
	case kindAtomic:
		binary.LittleEndian.PutUint64(b[offOperand:], f.operand)
		binary.LittleEndian.PutUint64(b[offCompare:], f.compare)
	}
}
