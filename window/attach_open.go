package window

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// Attached is memory that a rank has attached to a window. It is a window in which only Target
// has elements, those that it attached. It has no slots, and no lock: take that of the whole
// window. The pointer that [Window.Open] took leads to Index.
type Attached[T any] struct {
	*Window[T]
	Target, Index int
}

// Open takes a lease on attached memory at which p points, so that the memory stays until
// [Attached.Close] whatever its owner does:
//
//	a, err := w.Open(ctx, p)
//	v, err := a.GetValue(ctx, a.Target, a.Index)
//	err = a.Close(ctx)
//
// It returns [ErrPointer] if the owner has detached the memory, or if p leads elsewhere. Any rank
// may open any pointer, the owner its own, and several times. An open takes one atomic at the
// target, and finds the memory as the first access to a target of a window does. A program that
// accesses it often opens it once. Kind: one-sided.
func (w *Window[T]) Open(ctx context.Context, p Pointer[T]) (*Attached[T], error) {
	ctx = wait.Context(ctx)
	at := place{p.window, p.target}
	target, entry := at.split()
	if w.lease != nil || uint(entry) >= uint(w.layout.attachments) || uint(target) >= uint(len(w.remotes)) {
		return nil, w.fail("Open", fmt.Errorf("%v: %w: it leads to no attached memory of this window", p, ErrPointer))
	}
	c, err := w.open(ctx, at, p)
	if err != nil {
		return nil, w.failAt("Open", target, -1, 0, err)
	}
	opened := newWindow[T](c, w.outer)
	if err := w.attached.enter(c, opened.unmap); err != nil {
		return nil, w.failAt("Open", target, -1, 0, errors.Join(err, w.releaseLease(ctx, target, entry)))
	}
	return &Attached[T]{opened, target, int(p.index)}, nil
}

// A lease leads from the window on attached memory to the whole window.
type lease struct {
	whole         *core
	target, entry int
}

// open takes a lease and returns the core of the window on it.
func (c *core) open(ctx context.Context, at place, p fmt.Stringer) (*core, error) {
	target, entry := at.split()
	r, err := c.remote(ctx, target)
	if err != nil {
		return nil, err
	}
	var word uint64
	release := func() { _ = c.releaseLease(ctx, target, entry) }
	if err := c.within(ctx, r, func() (err error) {
		word, err = c.entry(context.WithoutCancel(ctx), target, entry, 1)
		return err
	}, release); err != nil {
		return nil, err
	}
	name := c.attachedName(entry, word>>generationShift)
	if word&oneGeneration == 0 || team.ID(name) != at.id && !mutant.OpenAnyGeneration {
		return nil, errors.Join(fmt.Errorf("%v: %w: its owner has detached it", p, ErrPointer), c.releaseLease(ctx, target, entry))
	}
	remote, err := c.team.Resolve(ctx, c.team.Members[target], name)
	if err != nil {
		return nil, errors.Join(err, c.releaseLease(ctx, target, entry))
	}
	return c.leased(at, name, remote), nil
}

// leased returns the core of a window on attached memory.
func (c *core) leased(at place, name string, remote *fabric.Remote) *core {
	target, entry := at.split()
	ranks := len(c.remotes)
	n := (remote.Len - c.attachedLayout(0).elem0) / c.layout.size
	l := &core{id: at.id, remotes: make([]atomic.Pointer[fabric.Remote], ranks), entryBits: placed(0, entry), name: fmt.Sprintf("%s (attached #%d)", c.name, entry), lengths: make([]int, ranks)}
	l.segment = &segment{team: c.team, region: name, lease: &lease{c, target, entry}, gates: make([]atomic.Pointer[gate], ranks)}
	l.lengths[target] = n
	l.remotes[target].Store(remote)
	l.layout = c.attachedLayout(0)
	if target == c.team.Rank {
		l.layout = c.attachedLayout(n)
		l.block = c.attached.blockOf(entry)
	}
	return l
}

// blockOf returns the memory of an entry of this rank.
func (a *attachments) blockOf(entry int) arena.Block {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entries[entry].block
}

// enter records a window on attached memory, for the end of the whole window.
func (a *attachments) enter(c *core, unmap func()) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return ErrFreed
	}
	if a.leases == nil {
		a.leases = map[*core]func(error){}
	}
	a.leases[c] = func(cause error) {
		c.freed.Store(true)
		unmap()
		c.parts.end()
		c.remotes[c.lease.target].Load().Retire(cause)
	}
	return nil
}

// leave ends a window on attached memory. It returns false if the window has ended.
func (a *attachments) leave(c *core) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	end, ok := a.leases[c]
	if ok {
		delete(a.leases, c)
		end(ErrFreed)
	}
	return ok
}

// end ends all windows on attached memory that this rank has opened, and refuses others.
func (a *attachments) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, end := range a.leases {
		end(ErrFreed)
	}
	a.leases, a.ended = nil, true
}

// Close completes this rank's operations on the memory, and ends the lease. Later operations
// return [ErrFreed]. Preconditions: no other goroutine is inside an operation on the memory, and
// each request was waited for. Kind: one-sided.
func (a *Attached[T]) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	l := a.lease
	if err := a.updates.await(ctx, a.team.Fabric); err != nil {
		return a.failAt("Close", l.target, -1, 0, err) // the lease stays
	}
	if !l.whole.attached.leave(a.core) {
		return a.fail("Close", ErrFreed)
	}
	err := a.complete(ctx, a.remotes[l.target].Load())
	return a.failAt("Close", l.target, -1, 0, errors.Join(err, l.whole.releaseLease(ctx, l.target, l.entry)))
}

// releaseLease takes a lease back, behind all earlier operations on the target. It goes on if
// ctx ends.
func (c *core) releaseLease(ctx context.Context, target, entry int) error {
	r, err := c.remote(ctx, target)
	if err != nil {
		return err
	}
	r.Peer.Order()
	return c.within(ctx, r, func() error {
		_, err := c.entry(context.WithoutCancel(ctx), target, entry, ^uint64(0))
		return err
	}, func() {})
}
