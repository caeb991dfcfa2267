package fan_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestWriteToFanInPostsOneWordMore(t *testing.T) {
	pipetest.Alone(t, pipetest.Queued, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		f, err := fan.OpenIn[byte](ctx, r.World, []int{0})
		r.NoError(err)
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte{1}))
		b, err := w.Alloc(ctx, 100)
		r.NoError(err)
		cost := l.Cost(func() { r.NoError(w.Write(ctx, b)) })
		r.EqualValues(3, cost.Posted[driver.OpWrite], "block, flag and the number behind them")
		r.EqualValues(3, cost.Requests())
		for range 2 {
			b, _, err := f.Read(ctx)
			r.NoError(err)
			r.NoError(f.Free(b))
		}
		cost = l.Cost(func() {
			_, _, err := f.TryRead()
			r.ErrorIs(err, rpipe.ErrWouldBlock)
		})
		r.Zero(cost.Requests(), "reading is loads")
		r.NoError(f.Close(ctx))
		_ = w.Close(ctx)
	})
}

func TestFanInAllocatesNothingPerBlock(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				f, writers := pipetest.FanOfMany(ctx, r, 100)
				for _, w := range writers {
					r.NoError(w.Send(ctx, nil))
				}
				for range writers {
					b, _, err := f.Read(ctx)
					r.NoError(err)
					r.NoError(f.Free(b))
				}
				i := 0
				r.Zero(r.Allocs(500, func() {
					b, _ := writers[i*7%100].Alloc(ctx, 8)
					_ = writers[i*7%100].Write(ctx, b)
					b, _, _ = f.Read(ctx)
					_ = f.Free(b)
					i++
				}))
				pipetest.CloseMany(ctx, r, f, writers)
			})
		})
	}
}
