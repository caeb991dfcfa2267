package team

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/wait"
)

// awaitActive is await that also ends early once members from, or without any all others, have
// left. Only a wait that takes long finds that out.
func (t *Team) awaitActive(ctx context.Context, m wait.Manner, from []int, lost func() error, ready func() bool) error {
	m.Brief = true
	err := t.await(ctx, m, lost, ready)
	if err != nil && errors.Is(err, wait.ErrLong) {
		m.Brief = false
		return t.awaitLeaving(wait.Context(ctx), m, from, lost, ready)
	}
	return err
}

// awaitLeaving sends requests to members in a goroutine, beside its wait. Once all have left, nothing meets
// the condition of the wait any more.
func (t *Team) awaitLeaving(ctx context.Context, m wait.Manner, from []int, lost func() error, ready func() bool) error {
	ranks := t.awaited(from)
	if len(ranks) == 0 {
		return t.await(ctx, m, lost, ready)
	}
	requesting, stop := context.WithCancel(ctx)
	var left atomic.Pointer[error] // of all members
	var requests sync.WaitGroup
	requests.Go(func() {
		if err := t.AwaitLeft(requesting, ranks); errors.Is(err, fabric.ErrLeft) {
			left.Store(&err)
			t.Poke()
		}
	})
	defer requests.Wait()
	defer stop()
	return t.await(ctx, m, func() error {
		if err := left.Load(); err != nil {
			return *err
		}
		return lost()
	}, ready)
}

// awaited returns the world ranks of members from, or without any of all others. It returns none
// if this rank is among them: its program may yet meet a condition of its own.
func (t *Team) awaited(from []int) (ranks []int) {
	if slices.Contains(from, t.Rank) {
		return nil
	}
	for i := range len(t.Members) - 1 {
		m := (t.Rank + 1 + i) % len(t.Members) // so that ranks do not all send requests to the same one
		if len(from) == 0 || slices.Contains(from, m) {
			ranks = append(ranks, t.Members[m])
		}
	}
	return ranks
}
