package rpipe_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// goneBy is gone by a writer of the rank.
func goneBy(ctx context.Context, r *testjob.Rank, w *rpipe.Writer[byte]) {
	for pipetest.WriterEnd(w).Registry.Lingering() > 0 {
		r.NoError(ctx.Err())
		time.Sleep(100 * time.Microsecond)
	}
	r.NoError(r.World.Barrier(ctx), "none lingers")
}

// goneFrom is gone, and waits for the writer's rank.
func goneFrom(ctx context.Context, r *testjob.Rank, rd *rpipe.Reader[byte]) {
	gone(ctx, r, rd)
	r.NoError(r.World.Barrier(ctx), "none lingers")
}

func TestUnusedWriterClosedFirstReleasesMemory(t *testing.T) {
	eachPair(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.NoError(w.Close(ctx))
		r.NoError(r.World.Barrier(ctx))
		goneBy(ctx, r, w)
	}, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		r.NoError(r.World.Barrier(ctx))
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		_, err = rd.Read(ctx)
		r.Equal(io.EOF, err)
		r.NoError(rd.Close(ctx))
		goneFrom(ctx, r, rd)
	})
}

func TestUnusedReaderClosedFirstReleasesMemory(t *testing.T) {
	eachPair(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		r.NoError(r.World.Barrier(ctx))
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.ErrorIs(w.Send(ctx, []byte{1}), rpipe.ErrClosed)
		r.NoError(w.Close(ctx))
		goneBy(ctx, r, w)
	}, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		r.NoError(rd.Close(ctx))
		r.NoError(r.World.Barrier(ctx))
		goneFrom(ctx, r, rd)
	})
}

func TestEndpointsClosedEarlyReleaseMemory(t *testing.T) {
	eachPair(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte{1}))
		r.ErrorIs(w.Close(pipetest.Ended(ctx)), context.Canceled)
		r.NoError(r.World.Barrier(ctx))
		goneBy(ctx, r, w)
	}, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(rd.Close(ctx))
		goneFrom(ctx, r, rd)
	})
}

// TestLateWriterOfClosedReaderReleasesMemory closes a reader before there is
// a writer, and then a writer that cannot reach the reader's rank.
func TestLateWriterOfClosedReaderReleasesMemory(t *testing.T) {
	eachPair(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		r.NoError(r.World.Barrier(ctx))
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		var far atomic.Bool
		far.Store(true)
		pipetest.Lose(pipetest.WriterEnd(w), &far)
		r.ErrorIs(w.Close(pipetest.Ended(ctx)), context.DeadlineExceeded)
		far.Store(false)
		goneBy(ctx, r, w)
	}, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		r.NoError(rd.Close(ctx))
		r.NoError(r.World.Barrier(ctx))
		goneFrom(ctx, r, rd)
	})
}
