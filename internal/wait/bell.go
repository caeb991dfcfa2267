// Package wait is the only place in gopgas where anything waits for memory to
// change: poll about a hundred times, or where that takes system calls once (32 times if
// nobody else needs the core), yield up to a thousand times, then park.
//
// Each rank has one [Bell], an event count. Whoever makes a condition true
// stores it with an atomic and rings; whoever waits announces itself, looks
// once more and parks:
//
//	ringer                     waiter
//	store condition (atomic)   waiters++
//	if waiters > 0:            s = seq
//	    seq++, wake            if condition: leave
//	                           sleep while seq == s
//
// All four accesses are sequentially consistent, so at least one side sees the
// other (Dekker's argument): without the second look a wake-up could be lost.
//
// A bell whose words lie in memory that other processes map sleeps in a futex.
// One goroutine of the process, the leader, sits there on behalf of all, since
// each goroutine in a system call costs a thread; the others wait on a channel
// that the leader closes. A bell of this process alone uses the channel only.
package wait

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Ringer wakes whoever waits on the other side.
type Ringer interface {
	// Ring is called after the condition was stored with an atomic operation.
	Ring()
}

// A Bell is an event count. Any goroutine may ring it and wait on it.
type Bell struct {
	words   *words
	shared  bool
	fd      int
	offset  int64
	parks   atomic.Uint64
	ended   atomic.Uint64
	alone   bool   // see OwnCore
	onPark  func() // nil, or what has those ring who do so only on demand
	mu      sync.Mutex
	led     bool          // a goroutine of this process is in the futex
	changed chan struct{} // closed to wake the others; nil while there are none
}

// words is the part of a bell that other processes may see.
type words struct {
	seq     atomic.Uint32 // moves whenever someone rings while someone waits
	waiters atomic.Uint32 // goroutines, in all processes, between announcing and leaving
}

// Size is the number of bytes that a shared bell occupies; they are 8-aligned.
const Size = 8

// NewLocal returns a bell for the goroutines of this process.
func NewLocal() *Bell { return &Bell{words: new(words), fd: -1} }

// NewShared returns a bell on the first Size bytes of mem, which lie at offset
// in the memfd fd and which other processes may map and ring as well. fd is -1
// for a view of a peer's bell.
func NewShared(mem []byte, fd int, offset int64) *Bell {
	return &Bell{words: wordsAt(mem), shared: true, fd: fd, offset: offset}
}

// Location tells where other processes find this bell.
func (b *Bell) Location() (fd int, offset int64, ok bool) {
	return b.fd, b.offset, b.shared && b.fd >= 0
}

// OnPark has f called by every goroutine that is about to sleep here, before it
// looks for the last time: some devices ring only when they are asked to. It is
// called before anyone waits.
func (b *Bell) OnPark(f func()) { b.onPark = f }

// OwnCore says that this process has a core to itself, which no other process needs while
// it waits. It is called before anyone waits.
func (b *Bell) OwnCore() { b.alone = true }

// Parks counts how often a goroutine of this process went to sleep here.
func (b *Bell) Parks() uint64 { return b.parks.Load() }

// Ended counts the waits of this process whose condition came true after the waiter had
// made way for others. It stands still while all waits are in vain.
func (b *Bell) Ended() uint64 { return b.ended.Load() }

// Waiting tells whether someone sleeps here or is about to.
func (b *Bell) Waiting() bool { return b.words.waiters.Load() > 0 }

// Ring wakes everyone who waits. It costs one load when nobody does.
func (b *Bell) Ring() {
	if b.words.waiters.Load() == 0 {
		return
	}
	b.words.seq.Add(1)
	if b.shared {
		futexWake(&b.words.seq)
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

// Wait returns nil once ready has returned true, or the cause of ctx's end.
// ready is called often and by the waiting goroutine only; it should make
// progress as well as look. ctx is not looked at when ready is true at once.
func (b *Bell) Wait(ctx context.Context, ready func() bool) error {
	return b.wait(ctx, polls, ready)
}

// WaitCalling is Wait for a ready that makes system calls.
func (b *Bell) WaitCalling(ctx context.Context, ready func() bool) error {
	if b.alone {
		return b.wait(ctx, callsAlone, ready)
	}
	return b.wait(ctx, calls, ready)
}

func (b *Bell) wait(ctx context.Context, looks int, ready func() bool) error {
	ctx = Context(ctx)
	done, err := b.spin(ctx, looks, ready)
	if done || err != nil {
		return err
	}
	return b.park(ctx, ready)
}
