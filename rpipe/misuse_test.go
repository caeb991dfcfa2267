package rpipe_test

import (
	"context"
	"math"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

func TestBlocksThatAreGoneAreStale(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		ends(ctx, r, func(w *rpipe.Writer[int64]) {
			b, err := w.Alloc(ctx, 3)
			r.NoError(err)
			r.NoError(w.Free(b))
			r.ErrorIs(w.Free(b), rpipe.ErrStale, "freed twice")
			r.ErrorIs(w.Write(ctx, b), rpipe.ErrStale, "written after it was freed")
			again, err := w.Alloc(ctx, 3)
			r.NoError(err)
			r.NotEqual(b.Addr(), again.Addr())
			r.ErrorIs(w.Write(ctx, b), rpipe.ErrStale, "another block lies there now")
			r.NoError(w.Write(ctx, again))
			err = w.Write(ctx, again)
			r.ErrorIs(err, rpipe.ErrStale, "written twice")
			r.ErrorIs(w.Free(again), rpipe.ErrStale, "freed after it was written")
			var op *rpipe.OpError
			r.ErrorAs(err, &op)
			r.Equal("Write", op.Op)
			r.Equal("pipe#0", op.Pipe)
			r.Equal([2]int{0, 1}, [2]int{op.Rank, op.Peer})
			r.ErrorContains(err, again.Addr().String())
		}, func(rd *rpipe.Reader[int64]) {
			b, err := rd.Read(ctx)
			r.NoError(err)
			r.Equal(3, b.Len())
			r.NoError(rd.Free(b))
			r.ErrorIs(rd.Free(b), rpipe.ErrStale)
			for _, err := range rd.All(ctx) {
				r.NoError(err, "nothing else was written")
				r.Fail("a block came")
			}
		}, opts...)
	})
}

func TestBlocksOfOtherPipesAreForeign(t *testing.T) {
	alone(t, mapped, func(ctx context.Context, r *testjob.Rank, l *loopback) {
		l.open()
		other := &loopback{ctx: ctx, r: r, trace: l.trace, spy: l.spy}
		other.open()
		b := other.alloc(5)
		r.ErrorIs(l.w.Write(ctx, b), rpipe.ErrForeign)
		r.ErrorIs(l.w.Free(b), rpipe.ErrForeign)
		r.ErrorIs(l.rd.Free(b), rpipe.ErrForeign)
		r.ErrorIs(l.w.Write(ctx, rpipe.Block[byte]{}), rpipe.ErrForeign)
		got := other.read(other.write(b))
		r.ErrorIs(other.w.Write(ctx, got), rpipe.ErrForeign, "the reader's blocks are not the writer's")
		r.ErrorIs(l.rd.Free(got), rpipe.ErrForeign)
		other.free(got)
		other.close()
		l.close()
	})
}

func TestBlocksThatNeverFitAreRefused(t *testing.T) {
	alone(t, mapped, func(ctx context.Context, r *testjob.Rank, l *loopback) {
		l.open(rpipe.WithHeap(4096))
		_, err := l.w.Alloc(ctx, 4097)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		r.ErrorContains(err, "WithHeap")
		_, err = l.w.Alloc(ctx, -1)
		r.ErrorIs(err, runtime.ErrRange)
		_, err = l.w.Alloc(ctx, math.MaxInt)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		b := l.alloc(4096)
		l.free(l.read(l.write(b)))
		l.close()
	})
}

func TestWrongArgumentsOfOpen(t *testing.T) {
	mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		for _, opt := range []rpipe.Option{rpipe.WithWidth(0), rpipe.WithWidth(1 << 21), rpipe.WithHeap(0), rpipe.WithHeap(100),
			rpipe.WithHeap(1<<30 + 64), rpipe.WithBlocks(0), rpipe.WithSync(0), rpipe.WithSync(9), rpipe.WithFMA(-1)} {
			_, err := rpipe.OpenWriter[int](ctx, r.World, 0, opt)
			r.ErrorIs(err, runtime.ErrRange)
			_, err = rpipe.OpenReader[int](ctx, r.World, 0, opt)
			r.ErrorIs(err, runtime.ErrRange)
		}
		for _, rank := range []int{-1, 1} {
			_, err := rpipe.OpenWriter[int](ctx, r.World, rank)
			r.ErrorIs(err, runtime.ErrRange)
		}
		_, err := rpipe.OpenReader[string](ctx, r.World, 0)
		r.ErrorIs(err, rpipe.ErrType)
		_, err = rpipe.OpenReader[struct{}](ctx, r.World, 0)
		r.ErrorIs(err, rpipe.ErrType)
		_, err = rpipe.OpenWriter[int](ctx, nil, 0)
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = rpipe.OpenWriter[int](ctx, r.World, 0, rpipe.WithHeap(1<<30))
		r.NoError(err, "a writer needs little memory of its own")
		_, err = rpipe.OpenReader[int](ctx, r.World, 0, rpipe.WithHeap(1<<30))
		r.ErrorIs(err, runtime.ErrExhausted)
	})
}

func TestAClosedEndIsOfNoUse(t *testing.T) {
	alone(t, queued, func(ctx context.Context, r *testjob.Rank, l *loopback) {
		l.open()
		b := l.read(l.write(l.alloc(1)))
		l.close()
		_, err := l.w.Alloc(ctx, 1)
		r.ErrorIs(err, rpipe.ErrClosed)
		r.ErrorContains(err, "open another")
		r.ErrorIs(l.w.Flush(ctx), rpipe.ErrClosed)
		_, err = l.rd.Read(ctx)
		r.ErrorIs(err, rpipe.ErrClosed)
		_, err = l.rd.TryRead()
		r.ErrorIs(err, rpipe.ErrClosed)
		r.ErrorIs(l.rd.Free(b), rpipe.ErrClosed)
		r.NoError(l.rd.Sync(ctx), "there is nothing to tell")
		r.NoError(l.w.Close(ctx))
		r.NoError(l.rd.Close(ctx))
	})
}
