package fan_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A source is an rpipe.Reader, or a fan-in of one pipe.
type source struct {
	read    func(ctx context.Context) error // a block, which it frees
	arrived func() bool
	clog    func(full *atomic.Bool)
	close   func(ctx context.Context) error
}

// sources open each kind of source from rank 0.
var sources = map[string]func(ctx context.Context, r *testjob.Rank) source{
	"reader": func(ctx context.Context, r *testjob.Rank) source {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0)
		r.NoError(err)
		read := func(ctx context.Context) error { _, err := rd.Recv(ctx, nil); return err }
		return source{read, rd.Arrived, func(full *atomic.Bool) { pipetest.Clog(pipetest.ReaderEnd(rd), full) }, rd.Close}
	},
	"fan-in": func(ctx context.Context, r *testjob.Rank) source {
		in, err := fan.OpenIn[byte](ctx, r.World, []int{0})
		r.NoError(err)
		read := func(ctx context.Context) error {
			b, _, err := in.Read(ctx)
			if err == nil {
				err = in.Free(b)
			}
			return err
		}
		return source{read, in.HasNews, func(full *atomic.Bool) { pipetest.Clog(in.Ends()[0], full) }, in.Close}
	},
}

// canceledAtTheEnd has rank 0 run write, whose Close waits until rank 1 has read all.
// Rank 1 runs begin, whose result runs ahead of its last read. The read before that
// finds the end of the pipe and is canceled. begin closes begun for write: a barrier would
// wait for the queue between the two ranks, which may be full.
func canceledAtTheEnd(t *testing.T, write func(ctx context.Context, r *testjob.Rank, begun chan struct{}),
	begin func(ctx context.Context, r *testjob.Rank, in *source, begun chan struct{}) (last func())) {
	for kind, open := range sources {
		t.Run(kind, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				begun := make(chan struct{})
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 0 {
						write(ctx, r, begun)
						r.NoError(r.World.Barrier(ctx))
						return
					}
					in := open(ctx, r)
					last := begin(ctx, r, &in, begun)
					r.NoError(team.Of(r.World).Wait(ctx, in.arrived))
					if err := in.read(pipetest.Ended(ctx)); !errors.Is(err, io.EOF) { // it may meet the writer all the same
						r.ErrorIs(err, context.Canceled)
					}
					last()
					r.Equal(io.EOF, in.read(ctx))
					r.NoError(r.World.Barrier(ctx), "the writer has closed")
					r.NoError(in.close(ctx))
				})
			})
		})
	}
}

// The word that the writer's Close waits for finds no room in the queue.
func TestWriterClosesAfterCanceledReadOfEnd(t *testing.T) {
	canceledAtTheEnd(t, func(ctx context.Context, r *testjob.Rank, begun chan struct{}) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte{1}))
		<-begun // the block is read
		r.NoError(w.Close(ctx))
	}, func(ctx context.Context, r *testjob.Rank, in *source, begun chan struct{}) func() {
		r.NoError(in.read(ctx))
		var full atomic.Bool
		full.Store(true)
		in.clog(&full)
		close(begun)
		return func() { full.Store(false) }
	})
}

// The reader is not connected to the writer as it finds the end.
func TestWriterClosesAfterCanceledConnect(t *testing.T) {
	canceledAtTheEnd(t, func(ctx context.Context, r *testjob.Rank, begun chan struct{}) {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1)
		r.NoError(err)
		<-begun // the reader is open
		r.NoError(w.Close(ctx))
	}, func(_ context.Context, _ *testjob.Rank, _ *source, begun chan struct{}) func() {
		close(begun)
		return func() {}
	})
}

func TestCloseWriteReachesReaderPastFullQueue(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
				r.NoError(w.Send(ctx, []byte{1}))
				r.NoError(r.World.Barrier(ctx))
				var full atomic.Bool
				full.Store(true)
				pipetest.ClogWriter(pipetest.WriterEnd(w), &full)
				r.NoError(w.CloseWrite(pipetest.Ended(ctx)))
				r.ErrorIs(w.Send(ctx, []byte{2}), rpipe.ErrClosed)
				full.Store(false)
				r.NoError(r.World.Barrier(ctx), "the reader has found the end")
			}, func(rd *rpipe.Reader[byte]) {
				_, err := rd.Recv(ctx, nil)
				r.NoError(err)
				r.NoError(r.World.Barrier(ctx))
				_, err = rd.Recv(ctx, nil)
				r.Equal(io.EOF, err)
				r.NoError(r.World.Barrier(ctx))
			})
		})
	})
}

// The reader's rank does not respond to CloseWrite. The reader then connects and finds the
// end, so the writer must not write any more.
func TestCloseWriteEndsWritesBeforeReaderConnects(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
				var far atomic.Bool
				far.Store(true)
				pipetest.Lose(pipetest.WriterEnd(w), &far)
				r.ErrorIs(w.CloseWrite(ctx), context.DeadlineExceeded)
				far.Store(false)
				r.ErrorIs(w.Send(ctx, []byte{1}), rpipe.ErrClosed)
				r.NoError(w.CloseWrite(ctx))
			}, func(rd *rpipe.Reader[byte]) {
				_, err := rd.Recv(ctx, nil)
				r.Equal(io.EOF, err)
			})
		})
	})
}
