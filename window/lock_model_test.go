package window_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

// TestLockKeepsToItsModel draws locks, attempts, unlocks and cancellations of all ranks, one at a time.
// After each it compares the lock's holders, and the ranks that wait, with a sequential model.
func TestLockKeepsToItsModel(t *testing.T) {
	testjob.EachTransport(t, 5, func(t *testing.T, c testjob.Config) {
		windows, seed := make([]*window.Window[int64], c.Ranks), rand.Uint64()
		t.Logf("seed %d", seed)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			windows[r.Me] = allocate[int64](ctx, r, 1)
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 0 {
				p := &lockPlayer{Rank: r, windows: windows, rnd: rand.New(rand.NewPCG(seed, 1)), modes: make([]window.Mode, r.N),
					held: make([]window.Held, r.N), results: make([]chan lockResult, r.N), cancels: make([]context.CancelCauseFunc, r.N)}
				for range testwatch.Rounds(60) {
					p.step(ctx)
				}
				p.finish(ctx)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

type lockResult struct {
	held window.Held
	err  error
}

// A lockPlayer drives all ranks, and has the model: ranks that hold the lock, and ranks that wait.
type lockPlayer struct {
	*testjob.Rank
	windows []*window.Window[int64]
	rnd     *rand.Rand
	modes   []window.Mode // by rank, of its lock or wait
	held    []window.Held
	results []chan lockResult
	cancels []context.CancelCauseFunc

	holders, waiting []int
}

var errImpatient = errors.New("no patience")

func (p *lockPlayer) step(ctx context.Context) {
	rank := p.rnd.IntN(p.N)
	switch {
	case slices.Contains(p.holders, rank):
		p.unlock(ctx, rank)
	case slices.Contains(p.waiting, rank):
		if p.rnd.IntN(3) > 0 {
			return
		}
		p.cancel(rank)
	case p.rnd.IntN(5) == 0:
		p.try(ctx, rank, window.Mode(p.rnd.IntN(2)))
	default:
		p.lock(ctx, rank, window.Mode(p.rnd.IntN(2)))
	}
	p.compare(ctx)
}

// free reports whether a rank gets the lock at once.
func (p *lockPlayer) free(m window.Mode) bool {
	return len(p.waiting) == 0 && (len(p.holders) == 0 || m == window.Shared && p.modes[p.holders[0]] == window.Shared)
}

func (p *lockPlayer) lock(ctx context.Context, rank int, m window.Mode) {
	free := p.free(m)
	p.modes[rank] = m
	over, cancel := context.WithCancelCause(ctx)
	result := make(chan lockResult, 1)
	p.results[rank], p.cancels[rank] = result, cancel
	go func() {
		held, err := p.windows[rank].Lock(over, 0, m)
		result <- lockResult{held, err}
	}()
	if p.waiting = append(p.waiting, rank); free {
		p.grant([]int{rank})
	}
}

func (p *lockPlayer) try(ctx context.Context, rank int, m window.Mode) {
	held, ok, err := p.windows[rank].TryLock(ctx, 0, m)
	p.NoError(err)
	p.Equal(p.free(m), ok, "%v by rank %d, held by %v, wanted by %v", m, rank, p.holders, p.waiting)
	if ok {
		p.modes[rank], p.held[rank], p.cancels[rank] = m, held, func(error) {}
		p.holders = append(p.holders, rank)
	}
}

func (p *lockPlayer) unlock(ctx context.Context, rank int) {
	p.NoError(p.held[rank].Unlock(ctx))
	p.cancels[rank](nil)
	p.holders = without(p.holders, rank)
	if len(p.holders) > 0 {
		return
	}
	readers, writers := p.split()
	if len(writers) == 0 || p.modes[rank] == window.Exclusive && len(readers) > 0 {
		p.grant(readers)
	} else {
		p.grant(writers[:1])
	}
}

func (p *lockPlayer) cancel(rank int) {
	p.cancels[rank](errImpatient)
	got := <-p.results[rank]
	p.ErrorIs(got.err, errImpatient)
	p.waiting = without(p.waiting, rank)
	if readers, writers := p.split(); len(writers) == 0 && p.modes[p.holders[0]] == window.Shared {
		p.grant(readers)
	}
}

// split returns the readers and the writers that wait.
func (p *lockPlayer) split() (readers, writers []int) {
	for _, rank := range p.waiting {
		if p.modes[rank] == window.Shared {
			readers = append(readers, rank)
		} else {
			writers = append(writers, rank)
		}
	}
	return readers, writers
}

// grant waits until ranks that waited have the lock.
func (p *lockPlayer) grant(ranks []int) {
	for _, rank := range ranks {
		got := <-p.results[rank]
		p.NoError(got.err)
		p.held[rank] = got.held
		p.waiting = without(p.waiting, rank)
		p.holders = append(p.holders, rank)
	}
}

// compare waits until the lock is as the model. A canceled call may still be ending.
func (p *lockPlayer) compare(ctx context.Context) {
	writer, readers := -1, len(p.holders)
	if readers > 0 && p.modes[p.holders[0]] == window.Exclusive {
		writer, readers = p.holders[0], 0
	}
	for {
		s := p.windows[0].LockState()
		p.Empty(p.unexpected(), "held by %v, wanted by %v: %+v", p.holders, p.waiting, s)
		if s.Writer == writer && s.Readers == readers && slices.Equal(s.Waiting, p.waiting) && (s.Waiters == (len(p.waiting) > 0) || writer >= 0) {
			return
		}
		if ctx.Err() != nil {
			p.NoError(fmt.Errorf("held by %v, wanted by %v, but %+v: %w", p.holders, p.waiting, s, context.Cause(ctx)))
		}
		goruntime.Gosched()
	}
}

// unexpected returns the ranks that have stopped waiting although the model has them wait.
func (p *lockPlayer) unexpected() (ranks []int) {
	for _, rank := range p.waiting {
		if len(p.results[rank]) > 0 {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func (p *lockPlayer) finish(ctx context.Context) {
	for len(p.holders) > 0 {
		p.unlock(ctx, p.holders[0])
		p.compare(ctx)
	}
	p.Empty(p.waiting)
}

func without(ranks []int, rank int) []int {
	return slices.DeleteFunc(ranks, func(r int) bool { return r == rank })
}
