package rpipe_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A block whose number finds no room in the queue until ctx ends is the reader's all the same. The
// reader learns of it without a further call of the writer.
func TestSummaryUpdateArrivesAfterCanceledWrite(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		var full atomic.Bool
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				f, err := fan.OpenIn[int](ctx, r.World, []int{0})
				r.NoError(err)
				for i := range 4 {
					b, _, err := f.Read(ctx)
					r.NoError(err)
					r.Equal(i, b.Mem()[0])
					r.NoError(f.Free(b))
					r.NoError(r.World.Barrier(ctx))
				}
				r.NoError(f.Close(ctx))
				return
			}
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1)
			r.NoError(err)
			r.NoError(w.Send(ctx, []int{0}))
			pipetest.Crowd(pipetest.WriterEnd(w), &full)
			r.NoError(r.World.Barrier(ctx))
			for i := range 3 {
				full.Store(true)
				b, err := w.Alloc(ctx, 1)
				r.NoError(err)
				b.Mem()[0] = 1 + i
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				r.NoError(w.Write(short, b))
				cancel()
				r.ErrorIs(w.Write(ctx, b), rpipe.ErrStale)
				r.ErrorIs(w.Free(b), rpipe.ErrStale)
				full.Store(false)
				r.NoError(r.World.Barrier(ctx)) // read
			}
			_ = w.Close(ctx)
		})
	})
}

func TestFullQueueJoinsSummaryUpdates(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			to, err := team.Of(r.World).Peer(ctx, 0)
			r.NoError(err)
			u := pipetest.NewSummaryUpdate(to)
			r.NoError(u.Tell())
			r.EqualValues(1, u.Told.Load())
			u.Full.Store(true)
			for range 3 {
				r.NoError(u.Tell())
			}
			r.EqualValues(1, u.Told.Load())
			u.Full.Store(false)
			r.Eventually(func() bool { return u.Told.Load() == 4 }, testwatch.Patience(), time.Millisecond)
			r.EqualValues(2, u.Stores.Load())
			r.NoError(u.Tell())
			r.EqualValues(5, u.Told.Load())
		})
	})
}

// A writer that has written nothing closes while the queue is full, and its reader closes
// first. The number for the close then leaves ahead of the bye flag, behind which the
// summary may be gone.
func TestSummaryUpdateLeavesAheadOfByeFlag(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		open, clogged, closed := make(chan struct{}), make(chan struct{}), make(chan struct{}) // a barrier would wait for the line
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				f, err := fan.OpenIn[int](ctx, r.World, []int{0})
				r.NoError(err)
				close(open)
				<-clogged
				r.NoError(f.Close(ctx))
				close(closed)
				return
			}
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1)
			r.NoError(err)
			<-open
			r.NoError(pipetest.Meet(ctx, pipetest.WriterEnd(w)))
			var full atomic.Bool
			full.Store(true)
			log := make(chan string, 4)
			pipetest.LogClosing(pipetest.WriterEnd(w), &full, log)
			r.NoError(w.CloseWrite(ctx))
			close(clogged)
			<-closed
			_ = w.Close(pipetest.Ended(ctx))
			time.AfterFunc(10*time.Millisecond, func() { full.Store(false) })
			r.Equal("number", <-log)
			r.Equal("bye", <-log)
		})
	})
}
