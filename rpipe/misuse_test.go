package rpipe_test

import (
	"context"
	"math"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

func TestWriterAndReaderRefuseStaleBlocks(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[int64]) {
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

func TestWriterAndReaderRefuseBlocksOfOtherPipes(t *testing.T) {
	pipetest.Alone(t, pipetest.Mapped, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open()
		other := &pipetest.Loopback{Ctx: ctx, R: r, Trace: l.Trace, Spy: l.Spy}
		other.Open()
		b := other.Alloc(5)
		r.ErrorIs(l.W.Write(ctx, b), rpipe.ErrForeign)
		r.ErrorIs(l.W.Free(b), rpipe.ErrForeign)
		r.ErrorIs(l.Rd.Free(b), rpipe.ErrForeign)
		r.ErrorIs(l.W.Write(ctx, rpipe.Block[byte]{}), rpipe.ErrForeign)
		got := other.Read(other.Write(b))
		r.ErrorIs(other.W.Write(ctx, got), rpipe.ErrForeign, "the reader's blocks are not the writer's")
		r.ErrorIs(l.Rd.Free(got), rpipe.ErrForeign)
		other.Free(got)
		other.Close()
		l.Close()
	})
}

func TestAllocRefusesBlocksLargerThanHeap(t *testing.T) {
	pipetest.Alone(t, pipetest.Mapped, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open(rpipe.WithHeap(4096))
		_, err := l.W.Alloc(ctx, 4097)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		r.ErrorContains(err, "WithHeap")
		_, err = l.W.Alloc(ctx, -1)
		r.ErrorIs(err, runtime.ErrRange)
		_, err = l.W.Alloc(ctx, math.MaxInt)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		b := l.Alloc(4096)
		l.Free(l.Read(l.Write(b)))
		l.Close()
	})
}

// TestAllocRefusesLargeBlocksAheadOfTheReader has no reader.
func TestAllocRefusesLargeBlocksAheadOfTheReader(t *testing.T) {
	pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, rpipe.WithHeap(4096))
		r.NoError(err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = w.Alloc(ended, 4097)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		r.ErrorContains(err, "raise WithHeap")
		_, err = w.TryAlloc(4097)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		r.NoError(w.Close(ctx))
		_, err = w.Alloc(ctx, 4097)
		r.ErrorIs(err, rpipe.ErrClosed)
	})
}

func TestWaitForAPeerThatOpensNothingNamesThePeer(t *testing.T) {
	pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, rpipe.WithName("out"))
		r.NoError(err)
		_, err = w.Alloc(ended, 1)
		r.ErrorIs(err, context.Canceled)
		r.ErrorContains(err, "while waiting for rank 0 to open its end")
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, rpipe.WithName("in"))
		r.NoError(err)
		_, err = rd.Read(ended)
		r.ErrorIs(err, context.Canceled)
		r.ErrorContains(err, "while waiting for rank 0 to open its end")
		r.NoError(w.Close(ctx))
		r.NoError(rd.Close(ctx))
	})
}

func TestOpenRefusesWrongArguments(t *testing.T) {
	pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
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

func TestClosedEndpointReturnsErrClosed(t *testing.T) {
	pipetest.Alone(t, pipetest.Queued, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open()
		b := l.Read(l.Write(l.Alloc(1)))
		l.Close()
		_, err := l.W.Alloc(ctx, 1)
		r.ErrorIs(err, rpipe.ErrClosed)
		r.ErrorContains(err, "open another")
		r.ErrorIs(l.W.Flush(ctx), rpipe.ErrClosed)
		_, err = l.Rd.Read(ctx)
		r.ErrorIs(err, rpipe.ErrClosed)
		_, err = l.Rd.TryRead()
		r.ErrorIs(err, rpipe.ErrClosed)
		r.ErrorIs(l.Rd.Free(b), rpipe.ErrClosed)
		r.NoError(l.Rd.Sync(ctx), "there is nothing to tell")
		r.NoError(l.W.Close(ctx))
		r.NoError(l.Rd.Close(ctx))
	})
}
