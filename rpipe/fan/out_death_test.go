package fan_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// An Alloc finds that a reader is dead. The next Write or Close reports the death, once.
func TestFanOutReportsDeathThatAllocFound(t *testing.T) {
	for name, report := range map[string]func(ctx context.Context, r *testjob.Rank, f *fan.Out[int], b rpipe.Block[int]){
		"Write": func(ctx context.Context, r *testjob.Rank, f *fan.Out[int], b rpipe.Block[int]) {
			r.ErrorIs(f.Write(ctx, b), runtime.ErrRankDead)
			err := f.Send(ctx, []int{2})
			r.ErrorIs(err, rpipe.ErrClosed, "no reader is left")
			r.NotErrorIs(err, runtime.ErrRankDead)
			r.NoError(f.Close(ctx))
		},
		"Close": func(ctx context.Context, r *testjob.Rank, f *fan.Out[int], _ rpipe.Block[int]) {
			r.ErrorIs(f.Close(ctx), runtime.ErrRankDead)
		},
	} {
		t.Run(name, func(t *testing.T) {
			reported := false
			_ = testjob.Config{Provider: "loop", Queued: true, Ranks: 2}.Try(t, func(ctx context.Context, r *testjob.Rank) {
				if r.Me == 1 {
					rd, err := rpipe.OpenReader[int](ctx, r.World, 0)
					r.NoError(err)
					_, err = rd.Read(ctx)
					r.NoError(err)
					r.Die()
				}
				f, err := fan.OpenOut[int](ctx, r.World, []int{1})
				r.NoError(err)
				r.NoError(f.Send(ctx, []int{1}))
				ctx, cancel := testwatch.With(context.WithoutCancel(ctx)) // the death ends the job's
				defer cancel()
				team := team.Of(r.World)
				r.NoError(team.Wait(ctx, func() bool { return team.Fate(team.Members[1]) != nil }))
				b, err := f.Alloc(ctx, 1)
				r.NoError(err)
				r.Zero(f.Readers())
				report(ctx, r, f, b)
				reported = true
			})
			if !reported {
				t.Error("rank 0 did not reach its end")
			}
		})
	}
}

// TestFanOutReportsDeathOfAReaderThatItHasNotMet has a reader's rank die ahead of the first Write, and
// as that Write waits for the reader.
func TestFanOutReportsDeathOfAReaderThatItHasNotMet(t *testing.T) {
	for _, knows := range []bool{true, false} {
		for _, c := range []testjob.Config{{Provider: "loop", Ranks: 2}, {Provider: "loop", Queued: true, Ranks: 2}} {
			t.Run(fmt.Sprintf("%v/rank 0 knows: %v", c, knows), func(t *testing.T) {
				reported := false
				_ = c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 1 {
						r.NoError(r.World.Barrier(ctx))
						r.Die()
					}
					f, err := fan.OpenOut[int](ctx, r.World, []int{1})
					r.NoError(err)
					r.NoError(r.World.Barrier(ctx))
					ctx, cancel := testwatch.With(context.WithoutCancel(ctx)) // the death ends the job's
					defer cancel()
					team := team.Of(r.World)
					if knows {
						r.NoError(team.Wait(ctx, func() bool { return team.Fate(team.Members[1]) != nil }))
					}
					r.ErrorIs(f.Send(ctx, []int{1}), runtime.ErrRankDead)
					r.Zero(f.Readers())
					r.NoError(f.Close(ctx))
					reported = true
				})
				if !reported {
					t.Error("rank 0 did not reach its end")
				}
			})
		}
	}
}
