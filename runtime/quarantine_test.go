package runtime_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func arenaOf(job *runtime.Job) *arena.Arena { return team.Of(job.World()).Arena() }

// behind runs a job in one process, with the launcher's messages to rank 0 behind the gate.
func behind(gate *runtime.Gate, c testjob.Config) func(context.Context, runtime.Body) error {
	return func(ctx context.Context, body runtime.Body) error {
		return runtime.RunLocalBehind(ctx, c.Ranks, gate, body, c.Options()...)
	}
}

// A trial makes rank 0 give up a collective call of a team that succeeds at all other
// ranks.
type trial struct {
	*require.Assertions
	gate *runtime.Gate
	job  *runtime.Job
	me   int
	team *runtime.Team
	// The events in order: the other ranks return from the call. Rank 0 makes a window
	// of its own. The other ranks use their memory of the call. Rank 0 then checks its
	// own window.
	returned, made, used *event
}

// An event happens once so many ranks have called come.
type event struct {
	missing atomic.Int64
	came    chan struct{}
}

func newEvent(ranks int) *event {
	e := &event{came: make(chan struct{})}
	e.missing.Store(int64(ranks))
	return e
}

func (e *event) come() {
	if e.missing.Add(-1) == 0 {
		close(e.came)
	}
}

// await also returns when ctx ends: then a later step fails.
func (e *event) await(ctx context.Context) {
	select {
	case <-e.came:
	case <-ctx.Done():
	}
}

// elems is the length of windows in trials; each member writes a share.
const (
	elems = 512
	share = elems / 8
)

// try runs body on the matrix of configurations.
func try(t *testing.T, body func(ctx context.Context, r *trial)) {
	t.Helper()
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		gate := &runtime.Gate{}
		returned, made, used := newEvent(c.Ranks-1), newEvent(1), newEvent(c.Ranks-1)
		require.NoError(t, testjob.RunBy(t.Context(), behind(gate, c), func(ctx context.Context, job *runtime.Job) error {
			team, err := job.World().Split(ctx, 0, 0)
			if err != nil {
				return err
			}
			body(ctx, &trial{require.New(t), gate, job, team.Rank(), team, returned, made, used})
			return nil
		}))
	})
}

// giveUp makes rank 0 give up a call that all other ranks complete. A gate holds back
// the call's exchanges from rank 0; their names begin with prefix.
func (r *trial) giveUp(ctx context.Context, prefix string, call func(context.Context) error) {
	over, cancel := context.WithCancel(ctx)
	caught := r.gate.Hold(prefix)
	go func() {
		defer cancel()
		select {
		case <-caught:
			r.returned.await(ctx)
		case <-ctx.Done():
		}
	}()
	r.ErrorIs(call(over), context.Canceled)
	r.NoError(ctx.Err())
	r.gate.Open()
}

// another makes a window of rank 0 alone, in free memory.
func (r *trial) another(ctx context.Context, self *runtime.Team) *window.Window[uint64] {
	w, err := window.Allocate[uint64](ctx, self, elems)
	r.NoError(err)
	r.made.come()
	return w
}

// untouched checks that no rank wrote to rank 0's other window.
func (r *trial) untouched(ctx context.Context, w *window.Window[uint64]) {
	r.used.await(ctx)
	r.Equal(make([]uint64, elems), w.Local(), "the others wrote to another window")
}

// put writes to a place of its own in rank 0's part of a window.
func (r *trial) put(ctx context.Context, w *window.Window[uint64]) {
	r.NoError(w.Put(ctx, 0, (r.me-1)*share, slices.Repeat([]uint64{0xdead}, share)))
	r.NoError(w.Flush(ctx, 0), "the connection is well")
}

// allocate makes rank 0 give up Allocate, and the other ranks put to its memory. It
// returns their window.
func (r *trial) allocate(ctx context.Context, self *runtime.Team) *window.Window[uint64] {
	if r.me != 0 {
		w, err := window.Allocate[uint64](ctx, r.team, elems)
		r.NoError(err)
		r.put(ctx, w)
		r.returned.come()
		r.made.await(ctx)
		r.put(ctx, w)
		r.used.come()
		return w
	}
	r.giveUp(ctx, r.team.Name()+"/", func(ctx context.Context) error {
		_, err := window.Allocate[uint64](ctx, r.team, elems)
		return err
	})
	r.GreaterOrEqual(arenaOf(r.job).Quarantined(), int64(8*elems))
	w := r.another(ctx, self)
	r.untouched(ctx, w)
	r.NoError(w.Free(ctx))
	return nil
}

func TestCanceledAllocateQuarantinesMemoryUntilTeamFree(t *testing.T) {
	try(t, func(ctx context.Context, r *trial) {
		self, err := r.team.Split(ctx, r.me, 0)
		r.NoError(err)
		before := arenaOf(r.job).Used()
		w := r.allocate(ctx, self)
		if r.me != 0 {
			r.ErrorIs(w.Free(ctx), runtime.ErrTeamBroken)
			r.Positive(arenaOf(r.job).Quarantined(), "rank 0 may have the window")
		}
		r.free(ctx)
		r.Zero(arenaOf(r.job).Quarantined())
		r.Less(arenaOf(r.job).Used(), before, "the team's own memory is free, too")
	})
}

// free frees the broken team.
func (r *trial) free(ctx context.Context) {
	if err := r.team.Free(ctx); err != nil {
		r.ErrorIs(err, runtime.ErrTeamBroken) // from a rank that had not learned of it
	}
	r.ErrorIs(r.team.Barrier(ctx), runtime.ErrTeamFreed)
}

func TestMemoryStaysQuarantinedWhileAMemberHasTheWindowOpen(t *testing.T) {
	try(t, func(ctx context.Context, r *trial) {
		self, err := r.team.Split(ctx, r.me, 0)
		r.NoError(err)
		w := r.allocate(ctx, self)
		r.free(ctx)
		var mine *window.Window[uint64]
		if r.me == 0 {
			r.GreaterOrEqual(arenaOf(r.job).Quarantined(), int64(8*elems))
			mine, err = window.Allocate[uint64](ctx, self, elems)
			r.NoError(err)
		}
		r.NoError(r.job.World().Barrier(ctx))
		if r.me != 0 {
			r.put(ctx, w)
		}
		r.NoError(r.job.World().Barrier(ctx))
		if r.me == 0 {
			r.Equal(make([]uint64, elems), mine.Local())
		}
	})
}

// TestCanceledSplitQuarantinesMemory with a color that members do not give each other in mapped memory: there
// the outcome is never unknown.
func TestCanceledSplitQuarantinesMemory(t *testing.T) {
	const wide = 1 << 40
	try(t, func(ctx context.Context, r *trial) {
		self, err := r.job.World().Split(ctx, r.me, 0)
		r.NoError(err)
		if r.me == 0 {
			r.giveUp(ctx, r.team.Name()+"/", func(ctx context.Context) error {
				_, err := r.team.Split(ctx, wide, 0)
				return err
			})
			r.Positive(arenaOf(r.job).Quarantined())
			r.untouched(ctx, r.another(ctx, self))
		} else {
			split, err := r.team.Split(ctx, wide, 0)
			r.NoError(err)
			r.returned.come()
			r.made.await(ctx)
			// Rank 0 makes no call; some members write before they learn of the
			// failure.
			r.ErrorIs(split.Barrier(ctx), runtime.ErrTeamBroken)
			r.used.come()
		}
		r.NoError(r.job.World().Barrier(ctx))
		r.free(ctx)
		r.Zero(arenaOf(r.job).Quarantined())
	})
}

// TestRankThatSentNoCardQuarantinesNothing makes rank 0 give up first: no other rank can
// complete the call. The other ranks do not know that, and may quarantine their own memory
// once.
func TestRankThatSentNoCardQuarantinesNothing(t *testing.T) {
	for name, elems := range map[string]int{"given up": elems, "refused and given up": -1} {
		t.Run(name, func(t *testing.T) {
			testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
				gone := make(chan struct{})
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					team, err := r.World.Split(ctx, 0, 0)
					r.NoError(err)
					before := arenaOf(r.Job).Used()
					if r.Me == 0 {
						over, cancel := context.WithCancel(ctx)
						cancel()
						_, err = window.Allocate[uint64](over, team, elems)
						r.ErrorIs(err, context.Canceled)
						r.Equal(before, arenaOf(r.Job).Used())
						close(gone)
					} else {
						<-gone
						_, err = window.Allocate[uint64](ctx, team, elems)
						r.ErrorIs(err, runtime.ErrTeamBroken)
					}
					kept := arenaOf(r.Job).Quarantined()
					r.Equal(before+kept, arenaOf(r.Job).Used())
					_, err = window.Allocate[uint64](ctx, team, elems)
					r.ErrorIs(err, runtime.ErrTeamBroken)
					_, err = team.Split(ctx, 0, 0)
					r.ErrorIs(err, runtime.ErrTeamBroken)
					r.Equal(kept, arenaOf(r.Job).Quarantined(), "a team that is broken agrees on nothing")
					r.Equal(before+kept, arenaOf(r.Job).Used())
					r.NoError(r.World.Barrier(ctx))
				})
			})
		})
	}
}
