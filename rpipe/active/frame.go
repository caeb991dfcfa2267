package active

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
)

// A frame is a request or a reply in a block. The package doc shows its layout.
type frame struct {
	kind    frameKind
	reason  reason // of a failure
	name    uint64 // hash of the handler's name
	id      uint64 // of the call; 0: the sender takes no reply
	payload []byte
}

const (
	frameHeader = 24

	frameReason = 1
	frameLength = 4
	frameName   = 8
	frameID     = 16
)

// A frameKind says what a frame carries: see frame.
type frameKind uint8

const (
	frameRequest frameKind = 1
	frameReply   frameKind = 2
	frameFailure frameKind = 3
)

// A reason tells a caller why its call failed at the target.
type reason uint8

const (
	handlerFailed reason = iota
	noHandler
	panicked
	replyTooLarge
)

// frameSize returns the number of bytes of a frame.
func frameSize(payload int) int { return frameHeader + (payload+7)&^7 }

// encode writes the frame to b, which has frameSize bytes.
func (f *frame) encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b, 0)
	b[0], b[frameReason] = byte(f.kind), byte(f.reason)
	le.PutUint32(b[frameLength:], uint32(len(f.payload)))
	le.PutUint64(b[frameName:], f.name)
	le.PutUint64(b[frameID:], f.id)
	clear(b[frameHeader+copy(b[frameHeader:], f.payload):])
}

// decodeFrame returns the first frame of b and the bytes behind it. The payload lies in b.
// ErrCorrupt: b does not begin with a whole frame.
func decodeFrame(b []byte) (f frame, rest []byte, err error) {
	if len(b) < frameHeader {
		return f, nil, fmt.Errorf("%w: %d bytes of a message", rpipe.ErrCorrupt, len(b))
	}
	le := binary.LittleEndian
	f = frame{kind: frameKind(b[0]), reason: reason(b[frameReason]), name: le.Uint64(b[frameName:]), id: le.Uint64(b[frameID:])}
	n := int(le.Uint32(b[frameLength:]))
	if f.kind < frameRequest || f.kind > frameFailure || n > len(b)-frameHeader || frameSize(n) > len(b) {
		return f, nil, fmt.Errorf("%w: message of kind %d with %d bytes in %d", rpipe.ErrCorrupt, f.kind, n, len(b))
	}
	f.payload = b[frameHeader : frameHeader+n : frameHeader+n]
	return f, b[frameSize(n):], nil
}
