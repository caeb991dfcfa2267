package fabric

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A letter is a message between the fabrics of two ranks:
//
//	0    1  2     3      8  16  24      32             48      56      64
//	kind op width status id use address key (Lo, Hi)   operand compare      ask
//	                            value                                       answer
//
// All numbers are little-endian. id and use name the operation at the origin.
type letter [letterSize]byte

const (
	letterSize = 64

	letterKind    = 0
	letterOp      = 1
	letterWidth   = 2
	letterStatus  = 3
	letterID      = 8
	letterUse     = 16
	letterAddr    = 24
	letterValue   = 24
	letterKeyLo   = 32
	letterKeyHi   = 40
	letterOperand = 48
	letterCompare = 56

	kindAsk    = 1
	kindAnswer = 2
)

func (l *letter) uint(at int) uint64       { return binary.LittleEndian.Uint64(l[at:]) }
func (l *letter) setUint(at int, v uint64) { binary.LittleEndian.PutUint64(l[at:], v) }

// ask fills l with a request for an atomic at the target.
func (l *letter) ask(id, use uint64, at driver.RemoteAddr, a Atomic) {
	*l = letter{letterKind: kindAsk, letterOp: byte(a.Op), letterWidth: a.Width}
	l.setUint(letterID, id)
	l.setUint(letterUse, use)
	l.setUint(letterAddr, at.Addr)
	l.setUint(letterKeyLo, at.RKey.Lo)
	l.setUint(letterKeyHi, at.RKey.Hi)
	l.setUint(letterOperand, a.Operand)
	l.setUint(letterCompare, a.Compare)
}

// answer turns the request in l into its response.
func (l *letter) answer(status driver.Status, value uint64) {
	l[letterKind], l[letterStatus] = kindAnswer, byte(status)
	l.setUint(letterValue, value)
}

func (l *letter) address() driver.RemoteAddr {
	return driver.RemoteAddr{Addr: l.uint(letterAddr), RKey: driver.Key{Lo: l.uint(letterKeyLo), Hi: l.uint(letterKeyHi)}}
}

// atomic returns the requested operation. It is not ok if there is no such operation.
func (l *letter) atomic() (a Atomic, ok bool) {
	a = Atomic{Op: driver.AtomicOp(l[letterOp]), Width: l[letterWidth], Operand: l.uint(letterOperand), Compare: l.uint(letterCompare)}
	switch a.Width {
	case 1, 2, 4, 8:
		return a, a.Op >= driver.AtomicAdd && a.Op <= driver.AtomicStore
	}
	return a, false
}
