package fan_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// A reader may learn of a writer's death before it takes the writer's last block, which
// has arrived. Read returns the block first.
func TestFanInReadsArrivedBlockBeforeErrRankDead(t *testing.T) {
	_ = testjob.Config{Provider: "loop", Ranks: 2}.Try(t, func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 1 {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 0, pipetest.Small...)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx), "the reader is there")
			r.NoError(w.Send(ctx, []int{7}))
			r.Die()
		}
		f, err := fan.OpenIn[int](ctx, r.World, []int{1}, pipetest.Small...)
		r.NoError(err)
		pipetest.Hide(f.Ends()[0])
		r.NoError(r.World.Barrier(ctx))
		ctx, cancel := testwatch.With(context.WithoutCancel(ctx)) // the death ends the job's
		defer cancel()
		team := team.Of(r.World)
		r.NoError(team.Wait(ctx, func() bool { return team.Fate(team.Members[1]) != nil }))
		b, _, err := f.Read(ctx)
		r.NoError(err)
		r.Equal([]int{7}, b.Mem())
		r.NoError(f.Free(b))
		_, _, err = f.Read(ctx)
		r.ErrorIs(err, runtime.ErrRankDead)
		r.NoError(f.Close(ctx))
	})
}
