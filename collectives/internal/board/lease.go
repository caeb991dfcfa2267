package board

import (
	"errors"
	"time"

	"github.com/gopgas/gopgas/internal/atomics"
)

// A lease lets other members read and write the memory at a Place while its owner waits. An
// owner whose call ends early does not wait, and its program uses the memory again. So a
// borrower first posts the turn of its use, and an owner that gives up posts that:
//
//	borrower                            owner that gives up
//	using = k                           gone = 1
//	if gone: use nothing, give up       wait while members use memory leased in turn k
//	read, write                         the memory is the caller's
//	if gone: forget it, give up
//	leave turn k, or post the next
//
// All accesses are sequentially consistent: the borrower sees the owner's post, or the
// owner the borrower's (Dekker's argument, as in package wait). A borrower is done soon and
// does not wait meanwhile, because it prepared its access before. Only operators of the
// program may last longer than the owner waits; they do not write to other members'
// memory, see foldByProgram. Along an edge the turn is the number of the line with the
// lease.

const (
	// usedFor bounds the wait for a borrower that makes no progress. That is an
	// operator that lasts, or a process that was stopped in the middle of a copy.
	usedFor = 5 * time.Second
	// unusedPause lets the borrowers run. The call has failed, so time does not
	// matter any more.
	unusedPause = 20 * time.Microsecond
)

// ErrGone means that the owner of leased memory has given up. The team is about to learn
// the cause.
var ErrGone = errors.New("a member has given up the call in which its memory was to be used")

// borrow announces that this member uses memory that a member, or all members, leased to
// it in turn k. The announcement holds until it leaves that turn or posts the next one.
func (b *Board) borrow(of int, k uint64) error {
	b.peers[b.rank].using.Store(k) // pairs with the load in uses
	return b.checkLease(of)
}

// checkLease returns ErrGone if the given member, or one of all, has given up. Data that
// the borrower read before checkLease returned nil is the owner's.
func (b *Board) checkLease(of int) error {
	atomics.AcquireRelease() // the reads come before the look
	for m := range b.peers {
		if (m == of || of == allMembers) && b.peers[m].gone.Load() != 0 {
			return ErrGone
		}
	}
	return nil
}

// uses reports whether a member may be using memory that this one leased to it in this
// turn, or the one before.
func (b *Board) uses(m int) bool {
	p := &b.peers[m]
	if p.head == nil { // this member has leased it nothing
		return false
	}
	k := p.using.Load()
	if k == 0 || k > b.turn || k+1 < b.turn {
		return false
	}
	return p.left.Load() < k && p.lines[(k+1)%lines].turn.Load() <= k
}

// Abandon ends all use of the board at this member, whose call has failed. When it
// returns, no member uses memory of this one.
func (b *Board) Abandon(err error) {
	b.failure = err
	if b.n == 1 {
		return
	}
	mine := &b.peers[b.rank]
	mine.using.Store(0)
	mine.gone.Store(1) // pairs with the load in borrow
	awaitBorrowers(b.n, b.dead, func(m int) bool { return m != b.rank && b.uses(m) })
}

// awaitBorrowers returns once none of n members uses memory that this one leased. It does not wait
// for dead members, nor for members that use it for longer than usedFor.
func awaitBorrowers(n int, dead, uses func(member int) bool) {
	over := time.Now().Add(usedFor)
	for m := range n {
		for uses(m) && !dead(m) && time.Now().Before(over) {
			time.Sleep(unusedPause)
		}
	}
}

// borrow announces that this member uses the memory of the next line, until it
// takes that line.
func (r *receiver) borrow() error {
	r.using.Store(r.got + 1) // pairs with the load in leases
	return r.checkLease()
}

// checkLease returns ErrGone if the sender has given up. Data that the receiver read before
// checkLease returned nil is the sender's.
func (r *receiver) checkLease() error {
	atomics.AcquireRelease() // the reads come before the look
	if r.gone.Load() != 0 {
		return ErrGone
	}
	return nil
}

// leases reports whether the receiver may be using memory of this member.
func (s *sender) leases() bool {
	k := s.using.Load()
	return k <= s.posted && k > s.taken.Load()
}

// giveUp ends all use of the queues at this member, whose call has failed. When it
// returns, no member reads memory of this one.
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
	awaitBorrowers(q.n, q.dead, func(m int) bool { return q.to[m] != nil && q.to[m].leases() })
}
