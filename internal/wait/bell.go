// Package wait is the only place in gopgas that waits for memory to change. A waiter
// polls about a hundred times; if a poll takes system calls it polls once (32 times if
// it has a core to itself). Then it yields up to a thousand times, then it parks.
//
// Each rank has one [Bell], an event count. A goroutine that makes a condition
// true stores it with an atomic and rings. A waiter announces itself, looks once
// more and parks:
//
//	ringer                     waiter
//	store condition (atomic)   waiters++
//	if waiters > 0:            s = seq
//	    seq++, wake            if condition: leave
//	                           sleep while seq == s
//
// All four accesses are sequentially consistent, so at least one of the two sees
// the other's (Dekker's argument). Without the second look a wake-up could be
// lost.
//
// An atomic store of Go costs a full barrier on amd64. A ringer that saves it, by
// [atomics.StoreRelease], may look at the waiters before its store is visible. If a waiter
// announces itself and looks between the two, no ringer wakes it. So the waiters for such
// stores look again after pauses ([Stored]). The store is visible long before the first of them ends.
//
// A bell in memory that other processes map sleeps in a futex. One goroutine of
// the process, the leader, sleeps there for all of them, since each goroutine in
// a system call costs a thread. The rest wait on a channel that the leader
// closes. A bell of this process alone uses the channel only.
package wait

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/mutant"
)

// A Ringer wakes the waiters at the peer.
type Ringer interface {
	// The caller calls Ring after it has stored the condition with an atomic
	// operation.
	Ring()
}

// A Bell is an event count. Any goroutine may ring it and wait on it.
type Bell struct {
	words   *words
	futex   *futex // nil: only goroutines of this process wait
	fd      int
	offset  int64
	parks   atomic.Uint64
	ended   atomic.Uint64
	alone   bool   // see OwnCore
	onPark  func() // nil, or asks devices that ring only on demand
	mu      sync.Mutex
	led     bool          // a goroutine of this process is in the futex
	changed chan struct{} // closed to wake all but the leader; nil without them
}

// words is the part of a bell that other processes may map.
type words struct {
	seq     atomic.Uint32 // moves with each ring while a waiter is announced
	waiters atomic.Uint32 // goroutines, in all processes, between announcing and leaving
}

// A futex holds the system calls for a word that several processes share.
type futex struct {
	wait  func(val uint32) // sleeps while the word is val; may return early
	wake  func()           // wakes the sleeping goroutine of each process
	yield func()           // lets another process have this core
}

// Size is the number of bytes that a shared bell occupies; they are 8-aligned.
const Size = 8

// NewLocal returns a bell for the goroutines of this process.
func NewLocal() *Bell { return &Bell{words: new(words), fd: -1} }

// NewShared returns a bell on the first Size bytes of mem, which lie at offset in
// the memfd fd. Other processes may map and ring it as well. fd is -1 for a view
// of a peer's bell.
func NewShared(mem []byte, fd int, offset int64) *Bell {
	w := wordsAt(mem)
	return &Bell{words: w, futex: newFutex(&w.seq), fd: fd, offset: offset}
}

// Location returns the memfd and the offset at which other processes find this
// bell.
func (b *Bell) Location() (fd int, offset int64, ok bool) {
	return b.fd, b.offset, b.fd >= 0
}

// OnPark has every goroutine that is about to sleep here call f before its last
// look: some devices ring only on demand. Call it before the first wait.
func (b *Bell) OnPark(f func()) { b.onPark = f }

// OwnCore marks this process as one with a core to itself, which no other process needs
// while this one waits. Call it before the first wait.
func (b *Bell) OwnCore() { b.alone = true }

// Parks counts the sleeps of goroutines of this process on this bell.
func (b *Bell) Parks() uint64 { return b.parks.Load() }

// Ended counts the waits of this process that ended with their condition after the
// waiter had yielded. It stands still while all waits are in vain.
func (b *Bell) Ended() uint64 { return b.ended.Load() }

// Waiting reports whether a goroutine sleeps here or is about to.
func (b *Bell) Waiting() bool { return b.words.waiters.Load() > 0 }

// Ring wakes all waiters. It costs one load if there are none.
func (b *Bell) Ring() {
	mutant.Hesitate(mutant.Operation) // the condition is true, and waiters sleep on
	if b.words.waiters.Load() == 0 {
		return
	}
	b.words.seq.Add(1)
	if b.futex != nil {
		b.futex.wake()
		return
	}
	b.broadcast()
}

// broadcast wakes this process's waiters that sleep on the channel.
func (b *Bell) broadcast() {
	b.mu.Lock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	b.mu.Unlock()
}

// Wait returns nil once ready has returned true, or the cause of ctx's end. Only
// the waiting goroutine calls ready, and often; ready should make progress as
// well as look. If ready is true at once, Wait does not look at ctx.
func (b *Bell) Wait(ctx context.Context, ready func() bool) error {
	return b.WaitWith(ctx, Manner{}, ready)
}

// WaitCalling is Wait for a ready that makes system calls.
func (b *Bell) WaitCalling(ctx context.Context, ready func() bool) error {
	return b.WaitWith(ctx, Manner{Calling: true}, ready)
}

// A Manner says how a waiter looks.
type Manner struct {
	// Calling: ready makes system calls, or another process needs this core. The waiter
	// looks a few times before it yields.
	Calling bool
	// Longest is not 0 if the condition may become true without a ring. A waiter that sleeps
	// looks again after firstPause, and then after pauses that double up to Longest.
	Longest time.Duration
	// Brief: the wait ends with [ErrLong] once the waiter has slept for longAfter.
	Brief bool
}

// Stored returns the manner of a wait for words that ringers store by [atomics.StoreRelease].
// The waiter looks again after pauses, since a ring may overtake the store.
func Stored() Manner { return Manner{Longest: overtaken} }

// WaitWith is Wait in the manner m.
func (b *Bell) WaitWith(ctx context.Context, m Manner, ready func() bool) error {
	ctx = Context(ctx)
	looks := polls
	if m.Calling {
		looks = calls
		if b.alone {
			looks = callsAlone
		}
	}
	done, err := b.spin(ctx, looks, ready)
	if !done && err == nil {
		err = b.park(ctx, m, ready)
	}
	mutant.Hesitate(mutant.Operation)
	return err
}
