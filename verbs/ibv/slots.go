package ibv

import (
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// The provider gives each request a number for the device:
//
//	63        32 31  30 29        0
//	incarnation  kind   sequence
//
// Each connection of a queue pair has an incarnation of its own within the
// context. By it the provider recognizes completions from before a reset, or of
// an earlier queue pair with the same number.
const (
	kindShift        = 30
	incarnationShift = 32
	seqMask          = 1<<kindShift - 1
)

// A kind says to which queue a request of the device belongs. It is a part of the request's number.
type kind uint32

const (
	kindSend kind = iota
	kindRecv
	kindMarker // posted behind all requests in ERR; it ends after them
)

// requestID packs the number that the device returns with a completion.
func requestID(incarnation uint32, k kind, seq uint32) uint64 {
	return uint64(incarnation)<<incarnationShift | uint64(k)<<kindShift | uint64(seq&seqMask)
}

func splitID(id uint64) (incarnation uint32, k kind, seq uint32) {
	return uint32(id >> incarnationShift), kind(id>>kindShift) & 3, uint32(id) & seqMask
}

// A slot keeps the fields of a request that its completion will need.
type slot struct {
	id       uint64
	bytes    int
	op       driver.Opcode
	signaled bool
}

// slots holds the requests of one queue that have not ended, oldest first. The
// device holds the first ones. The later ones were posted in ERR and wait to be
// flushed.
type slots struct {
	wq.Ring[slot]
	seq   uint32 // number of the oldest
	owned int    // by the device
}

// next returns the number of the next request.
func (s *slots) next() uint32 { return s.seq + uint32(s.Len()) }

// untake forgets the n newest, which the device did not take.
func (s *slots) untake(n int) {
	s.Unpush(n)
	s.owned -= n
}

// drop forgets the n oldest.
func (s *slots) drop(n int) {
	s.Pop(n)
	s.seq += uint32(n)
	s.owned = max(0, s.owned-n)
}

// find returns how many requests are older than the one with number seq. It
// returns false if the device does not hold that one.
func (s *slots) find(seq uint32) (int, bool) {
	i := int((seq - s.seq) & seqMask)
	return i, i < s.owned
}

// reset forgets all. Numbers go on, so that late completions are recognized.
func (s *slots) reset() { s.drop(s.Len()) }

// due reports whether the device owes a completion: it holds a signaled request. The result waits
// says that a request up to that one may wait for the peer's receive, which has no time limit.
func (s *slots) due() (due, waits bool) {
	for i := range s.owned {
		sl := s.At(i)
		waits = waits || sl.op == driver.OpSend || sl.op == driver.OpWriteImm
		if sl.signaled {
			return true, waits
		}
	}
	return false, waits
}
