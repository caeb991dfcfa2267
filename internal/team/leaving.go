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
// left.
func (t *Team) awaitActive(ctx context.Context, m wait.Manner, from []int, lost func() error, ready func() bool) error {
	ctx = wait.Context(ctx)
	var long bool
	var leaving leaving
	defer leaving.stop()
	m.Long = &long
	bad := func() error {
		if err := leaving.err(); err != nil {
			return err
		}
		return lost()
	}
	return t.await(ctx, m, bad, func() bool {
		if long {
			long = false
			leaving.ask(ctx, t, from)
		}
		return ready()
	})
}

// leaving ends a wait whose members make no more calls: nothing meets its condition any more.
// The goroutine that waits owns it. It begins to ask once the wait has taken long.
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
