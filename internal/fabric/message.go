package fabric

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A message is a request of one fabric to another for an atomic or a move, or the response:
//
//	0    1  2     3      8  16  24      32             48      56      64
//	kind op width status id use address key (Lo, Hi)   operand compare      request
//	                            value   second                              response
//	kind way              id use address key (Lo, Hi)   stage   bytes        move
//
// All numbers are little-endian. id and use name the operation at the origin.
type message [messageSize]byte

const (
	messageSize = 64

	messageKind    = 0
	messageOp      = 1
	messageWidth   = 2
	messageStatus  = 3
	messageID      = 8
	messageUse     = 16
	messageAddr    = 24
	messageValue   = 24
	messageSecond  = 32 // of a value of 16 bytes
	messageKeyLo   = 32
	messageKeyHi   = 40
	messageOperand = 48
	messageCompare = 56

	kindRequest  = 1
	kindResponse = 2
	kindMove     = 3

	moveIn  = 1 // from a stage to a region
	moveOut = 2
)

func (m *message) uint(at int) uint64       { return binary.LittleEndian.Uint64(m[at:]) }
func (m *message) setUint(at int, v uint64) { binary.LittleEndian.PutUint64(m[at:], v) }

// request fills m with a request for an atomic at the target.
func (m *message) request(id, use uint64, at driver.RemoteAddr, a Atomic) {
	*m = message{messageKind: kindRequest, messageOp: byte(a.Op), messageWidth: a.Width}
	m.setUint(messageID, id)
	m.setUint(messageUse, use)
	m.setUint(messageAddr, at.Addr)
	m.setUint(messageKeyLo, at.RKey.Lo)
	m.setUint(messageKeyHi, at.RKey.Hi)
	m.setUint(messageOperand, a.Operand)
	m.setUint(messageCompare, a.Compare)
}

// move fills m with a request to copy n bytes between a region of the target and a stage.
func (m *message) move(id, use uint64, way byte, at driver.RemoteAddr, stage uint64, n int) {
	m.request(id, use, at, Atomic{Operand: stage, Compare: uint64(n)})
	m[messageKind], m[messageOp] = kindMove, way
}

// respond turns the request in m into its response.
func (m *message) respond(status driver.Status, value, second uint64) {
	m[messageKind], m[messageStatus] = kindResponse, byte(status)
	m.setUint(messageValue, value)
	m.setUint(messageSecond, second)
}

func (m *message) address() driver.RemoteAddr {
	return driver.RemoteAddr{Addr: m.uint(messageAddr), RKey: driver.Key{Lo: m.uint(messageKeyLo), Hi: m.uint(messageKeyHi)}}
}

// atomic returns the requested operation. It is not ok if there is no such operation.
func (m *message) atomic() (a Atomic, ok bool) {
	a = Atomic{Op: driver.AtomicOp(m[messageOp]), Width: m[messageWidth], Operand: m.uint(messageOperand), Compare: m.uint(messageCompare)}
	return a, atomics.Fits(a.Op, int(a.Width))
}
