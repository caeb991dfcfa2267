package runtime

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
)

// Most calls block, describe themselves as one did before, and come when nothing else
// is under way. These are quick: they begin and end by one compare-and-swap each of
// a word that says all there is to say of them:
//
//	63                            8 7      2      1      0
//	number of the latest quick call  slot    under   held
//	                                         way
//
//	latest 6, none under way     begin: 7, slot 3, under way     end: 7, none under way
//
// The slot tells by what description, so that others find out in the middle of the
// call. Whoever wants to know, or has a call that is not quick, takes the stream's
// mutex and sets held. That ends the quick way for all, one that is under way
// included, until nothing is.
type quick struct {
	word  atomic.Uint64
	known [1 << slotBits]atomic.Pointer[team.Call] // descriptions that stay as they are
	// past are quick calls, and the latest before them. The one that is under way is
	// written by who makes it and looked at by nobody else.
	past [remembered]record
}

const (
	held     = 1 << 0
	underWay = 1 << 1

	slotShift = 2
	slotBits  = 6
	seqShift  = slotShift + slotBits
)

func slotOf(c *team.Call) uint64 { return (c.Mark ^ uint64(c.Kind)) % (1 << slotBits) }

// learn has calls of this description be quick from now on. Called with the stream
// held and no quick call under way.
func (q *quick) learn(c *team.Call) {
	if known := &q.known[slotOf(c)]; known.Load() != c {
		known.Store(c)
	}
}

// beginQuick begins a call, if that can be done the quick way.
func (s *stream) beginQuick(c *team.Call) (seq uint64, ok bool) {
	q, slot, word := &s.quick, slotOf(c), s.quick.word.Load()
	if word&(held|underWay) != 0 || q.known[slot].Load() != c {
		return 0, false
	}
	seq = word>>seqShift + 1
	if !q.word.CompareAndSwap(word, seq<<seqShift|slot<<slotShift|underWay) {
		return 0, false
	}
	r := &q.past[seq%remembered]
	r.seq, r.chain, r.call = seq, chained(q.past[(seq-1)%remembered].chain, c), *c
	s.met = r.chain
	if !s.inquiry.armed.Load() {
		s.mu.Lock()
		s.team.attend()
		s.mu.Unlock()
	}
	return seq, true
}

// end ends the call under way, if that is quick still.
func (q *quick) end() bool {
	word := q.word.Load()
	return word&held == 0 && q.word.CompareAndSwap(word, word&^underWay)
}

// hold stops the quick way and has the stream know what went on there. Called with
// the mutex held.
func (s *stream) hold() {
	q, word := &s.quick, s.quick.word.Load()
	for word&held == 0 && !q.word.CompareAndSwap(word, word|held) {
		word = q.word.Load()
	}
	if word&held != 0 {
		return
	}
	seq := word >> seqShift
	if word&underWay == 0 {
		s.last, s.chain = seq, q.past[seq%remembered].chain
		s.ended.Store(seq)
		return
	}
	s.last, s.chain = seq-1, q.past[(seq-1)%remembered].chain
	s.ended.Store(seq - 1)
	s.blocking = s.number(q.known[word>>slotShift%(1<<slotBits)].Load())
}

// release allows the quick way again, if nothing is under way. Called with the
// mutex held, after hold.
func (s *stream) release() {
	if s.ended.Load() != s.last {
		return
	}
	if r := &s.past[s.last%remembered]; r.seq == s.last {
		s.quick.past[s.last%remembered] = *r
	}
	s.quick.word.Store(s.last << seqShift)
}
