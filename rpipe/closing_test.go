package rpipe_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// eachPair runs one body at the writer's rank and one at the reader's.
func eachPair(t *testing.T, write, read pipeBody, more ...rpipe.Option) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		opts = append(opts, more...)
		switch r.Me {
		case 0:
			write(ctx, r, opts)
		case 1:
			read(ctx, r, opts)
		}
	})
}

func TestCanceledCloseOfFullWriterSendsEOF(t *testing.T) {
	eachPair(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte{1}))
		r.ErrorIs(w.Close(pipetest.Ended(ctx)), context.Canceled)
		r.NoError(r.World.Barrier(ctx), "now the reader begins")
		r.NoError(r.World.Barrier(ctx), "it has read the end")
	}, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		_, err = rd.Recv(ctx, nil)
		r.NoError(err)
		_, err = rd.Read(ctx)
		r.Equal(io.EOF, err)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(rd.Close(ctx))
	}, rpipe.WithWidth(1))
}

func TestCanceledCloseOfUnusedWriterSendsEOF(t *testing.T) {
	eachPair(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		time.Sleep(time.Millisecond) // the reader waits, most times
		if err := w.Close(pipetest.Ended(ctx)); err != nil {
			r.ErrorIs(err, context.Canceled)
		}
		r.NoError(r.World.Barrier(ctx))
	}, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		_, err = rd.TryRead() // meets the writer, if that is there
		r.ErrorIs(err, rpipe.ErrWouldBlock)
		r.NoError(r.World.Barrier(ctx))
		_, err = rd.Read(ctx)
		r.Equal(io.EOF, err)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(rd.Close(ctx))
	})
}

func TestCanceledCloseOfUnusedReaderStopsWriter(t *testing.T) {
	eachPair(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte{1}))
		r.NoError(r.World.Barrier(ctx))
		r.ErrorIs(w.Send(ctx, []byte{2}), rpipe.ErrClosed)
		r.ErrorIs(w.Close(ctx), rpipe.ErrClosed, "a block was not read")
		r.NoError(r.World.Barrier(ctx))
	}, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		if err := rd.Close(pipetest.Ended(ctx)); err != nil {
			r.ErrorIs(err, context.Canceled)
		}
		r.NoError(r.World.Barrier(ctx))
	}, rpipe.WithWidth(1))
}

// gone waits until no end of this rank lingers.
func gone(ctx context.Context, r *testjob.Rank, rd *rpipe.Reader[byte]) {
	for pipetest.ReaderEnd(rd).Registry.Lingering() > 0 {
		r.NoError(ctx.Err())
		time.Sleep(100 * time.Microsecond)
	}
}
