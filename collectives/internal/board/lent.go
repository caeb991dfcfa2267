package board

import (
	"errors"
	"time"
)

// Members lend each other memory: what lies at a Place is read, and written, by others
// while its owner waits for them. An owner whose call ends early does not, and its program
// uses the memory again. So who is about to use what others lend says in which turn, and
// an owner that gives up says that:
//
//	borrower                            owner that gives up
//	using = k                           gone = 1
//	if gone: use nothing, give up       wait while others use what was lent in turn k
//	read, write                         the memory is the caller's
//	if gone: forget it, give up
//	leave turn k, or post the next
//
// All accesses are sequentially consistent, so that one of the two sees the other
// (Dekker's argument, as in package wait). A borrower is done soon, and waits for nobody
// meanwhile: what it needs to reach the memory is there before. Only operators of the
// program's may last longer than the owner waits; they write to no memory of others, see
// foldByProgram. Along an edge the turn is the line in which the memory was lent.

const (
	// usedFor bounds the wait for one that does not get on: an operator that lasts, or a
	// process that was stopped in the middle of a copy.
	usedFor = 5 * time.Second
	// unusedPause lets those run that are waited for. Nobody is in a hurry any more.
	unusedPause = 20 * time.Microsecond
)

// ErrGone: the owner of what was lent has given up. The team is about to hear why.
var ErrGone = errors.New("a member has given up the call in which its memory was to be used")

// borrow says that this member uses what another one, or everyone, lent in turn k. It
// does until it leaves that turn or posts the next one.
func (b *Board) borrow(of int, k uint64) error {
	b.peers[b.rank].using.Store(k) // pairs with the load in uses
	return b.lent(of)
}

// lent returns ErrGone if another member, or one of all, has given up. What was read
// before it returned nil is what the owner lent.
func (b *Board) lent(of int) error {
	for m := range b.peers {
		if (m == of || of == everyone) && b.peers[m].gone.Load() != 0 {
			return ErrGone
		}
	}
	return nil
}

// uses tells whether a member may be using what this one lent in this turn, or the one
// before.
func (b *Board) uses(m int) bool {
	p := &b.peers[m]
	k := p.using.Load()
	if k == 0 || k > b.turn || k+1 < b.turn {
		return false
	}
	return p.left.Load() < k && p.lines[(k+1)%lines].turn.Load() <= k
}

// Abandon ends all use of the board at this member, whose call has failed. When it
// returns, nobody uses what this member lent.
func (b *Board) Abandon(err error) {
	b.failure = err
	if b.n == 1 {
		return
	}
	mine := &b.peers[b.rank]
	mine.using.Store(0)
	mine.gone.Store(1) // pairs with the load in borrow
	over := time.Now().Add(usedFor)
	for m := range b.peers {
		for m != b.rank && b.uses(m) && !b.dead(m) && time.Now().Before(over) {
			time.Sleep(unusedPause)
		}
	}
}

// borrow says that the next line's memory is used, until that line is taken.
func (r *receiver) borrow() error {
	r.using.Store(r.got + 1) // pairs with the load in lends
	return r.lent()
}

// lent is the same for the member at the other end.
func (r *receiver) lent() error {
	if r.gone.Load() != 0 {
		return ErrGone
	}
	return nil
}

// lends tells whether the other member may be using what it was lent.
func (s *sender) lends() bool {
	k := s.using.Load()
	return k <= s.posted && k > s.taken.Load()
}

// giveUp ends all use of the queues at this member, whose call has failed. When it
// returns, nobody reads what this member lent.
func (q *Queues) giveUp(err error) {
	q.failure = err
	for m := range q.n {
		if r := q.from[m]; r != nil {
			r.using.Store(0)
		}
		if s := q.to[m]; s != nil {
			s.gone.Store(1) // pairs with the load in borrow
		}
	}
	over := time.Now().Add(usedFor)
	for m, s := range q.to {
		for s != nil && s.lends() && !q.dead(m) && time.Now().Before(over) {
			time.Sleep(unusedPause)
		}
	}
}
