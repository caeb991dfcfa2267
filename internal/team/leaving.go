package team

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/wait"
)

// awaitActive is await that also ends early once members from, or without any all others, have
// left. Only a wait that takes long asks for that.
func (t *Team) awaitActive(ctx context.Context, m wait.Manner, from []int, lost func() error, ready func() bool) error {
	m.Brief = true
	err := t.await(ctx, m, lost, ready)
	if err != nil && errors.Is(err, wait.ErrLong) {
		m.Brief = false
		return t.awaitLeaving(wait.Context(ctx), m, from, lost, ready)
	}
	return err
}

func (t *Team) awaitLeaving(ctx context.Context, m wait.Manner, from []int, lost func() error, ready func() bool) error {
	var leaving leaving
	leaving.ask(ctx, t, from)
	defer leaving.stop()
	return t.await(ctx, m, func() error {
		if err := leaving.err(); err != nil {
			return err
		}
		return lost()
	}, ready)
}

// leaving ends a wait whose members make no more calls: nothing meets its condition any more.
// The goroutine that waits owns it.
type leaving struct {
	left  *atomic.Pointer[error] // of all members; nil before ask
	end   context.CancelFunc
	ended chan struct{}
}

// ask begins to ask members from, or without any all others, whether they have left. This
// rank's program may yet meet a condition of its own.
func (l *leaving) ask(ctx context.Context, t *Team, from []int) {
	if len(t.Members) == 1 || slices.Contains(from, t.Rank) {
		return
	}
	ranks := make([]int, 0, len(t.Members))
	for i := range len(t.Members) - 1 {
		m := (t.Rank + 1 + i) % len(t.Members) // so that ranks do not all ask the same one
		if len(from) == 0 || slices.Contains(from, m) {
			ranks = append(ranks, t.Members[m])
		}
	}
	ctx, l.end = context.WithCancel(ctx)
	left, ended := new(atomic.Pointer[error]), make(chan struct{})
	l.left, l.ended = left, ended
	go func() {
		defer close(ended)
		if err := t.AwaitLeft(ctx, ranks); errors.Is(err, fabric.ErrLeft) {
			left.Store(&err)
			t.Poke()
		}
	}()
}

// err returns the error of members that have all left, nil while one has not.
func (l *leaving) err() error {
	if l.left == nil {
		return nil
	}
	if err := l.left.Load(); err != nil {
		return *err
	}
	return nil
}

// stop ends the questions with the wait.
func (l *leaving) stop() {
	if l.end != nil {
		l.end()
		<-l.ended
	}
}
