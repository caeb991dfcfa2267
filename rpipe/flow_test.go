package rpipe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A slow reader stops the writer at the pipe's width, and at its memory.
func TestFullPipeStopsWriterUntilReaderFrees(t *testing.T) {
	const width = 4
	for name, opt := range map[string][]rpipe.Option{
		"width":  {rpipe.WithWidth(width)},
		"memory": {rpipe.WithHeap(width * 64)},
		"blocks": {rpipe.WithBlocks(width)},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
				opts = append(opts, opt...)
				pipetest.Ends(ctx, r, func(w *rpipe.Writer[int64]) {
					for i := range width {
						r.NoError(w.Send(ctx, []int64{int64(i)}))
					}
					full, cancel := context.WithCancelCause(ctx)
					enough := errors.New("enough")
					r.NoError(w.Flush(ctx))
					time.AfterFunc(time.Millisecond, func() { cancel(enough) })
					err := w.Send(full, []int64{-1})
					r.ErrorIs(err, enough)
					r.Equal(width, w.Stats().InFlight)
					r.NoError(r.World.Barrier(ctx), "now the reader begins")
					r.NoError(w.Send(ctx, []int64{width}), "what was given up left nothing behind")
					stats := w.Stats()
					r.EqualValues(width+1, stats.Written)
					r.Positive(stats.WidthWaits + stats.MemoryWaits)
				}, func(rd *rpipe.Reader[int64]) {
					r.NoError(r.World.Barrier(ctx))
					i := int64(0)
					for b, err := range rd.All(ctx) {
						r.NoError(err)
						r.Equal(i, b.Mem()[0])
						r.NoError(rd.Free(b))
						i++
					}
					r.EqualValues(width+1, i)
				}, opts...)
			})
		})
	}
}

func TestCanceledReadLosesNoBlock(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
			r.NoError(w.Send(ctx, []byte("first")))
			r.NoError(r.World.Barrier(ctx))
			r.NoError(w.Send(ctx, []byte("second")))
		}, func(rd *rpipe.Reader[byte]) {
			_, err := rd.Recv(ctx, nil)
			r.NoError(err)
			cause := errors.New("late")
			over, cancel := context.WithCancelCause(ctx)
			cancel(cause)
			_, err = rd.Read(over)
			r.ErrorIs(err, cause)
			r.NoError(r.World.Barrier(ctx))
			got := make([]byte, 3)
			n, err := rd.Recv(ctx, got)
			r.NoError(err)
			r.Equal(6, n, "the block's length, of which dst holds a part")
			r.Equal("sec", string(got))
		}, opts...)
	})
}

func TestWriterReturnsErrClosedAfterReaderCloses(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		switch r.Me {
		case 0:
			w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
			r.NoError(err)
			r.NoError(w.Send(ctx, make([]byte, 5000)))
			r.NoError(w.Send(ctx, make([]byte, 5000)))
			r.NoError(r.World.Barrier(ctx))
			for err == nil {
				err = w.Send(ctx, make([]byte, 5000))
			}
			r.ErrorIs(err, rpipe.ErrClosed)
			r.ErrorContains(err, "by the reader")
			r.ErrorIs(w.Close(ctx), rpipe.ErrClosed, "blocks were lost")
		case 1:
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
			r.NoError(err)
			_, err = rd.Recv(ctx, nil)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(rd.Close(ctx))
		}
	})
}

func TestCloseWakesRead(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 1)
				r.NoError(err)
				r.NoError(w.Send(ctx, []byte{1}))
				r.NoError(r.World.Barrier(ctx))
				r.NoError(w.Close(ctx))
				return
			}
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0)
			r.NoError(err)
			_, err = rd.Recv(ctx, nil)
			r.NoError(err)
			done := make(chan error, 1)
			go func() {
				_, err := rd.Read(ctx)
				done <- err
			}()
			for !team.Of(r.World).Bell().Waiting() {
				r.NoError(ctx.Err())
				team.Of(r.World).Progress()
			}
			r.NoError(rd.Close(ctx))
			r.ErrorIs(<-done, rpipe.ErrClosed)
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// In a pull pipe over queues what was fetched occupies the reader's own memory.
func TestPullWaitsForRoomInReaderMemory(t *testing.T) {
	pipetest.Alone(t, pipetest.Queued, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open(rpipe.WithPull(), rpipe.WithHeap(1024))
		kept := l.Read(l.Write(l.Alloc(1024)))
		r.NoError(l.Rd.Sync(ctx))
		r.NoError(l.W.Flush(ctx))
		l.Write(l.Alloc(1024)) // the writer's memory is free again
		_, err := l.Rd.TryRead()
		r.ErrorIs(err, rpipe.ErrWouldBlock)
		over, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("late"))
		_, err = l.Rd.Read(over)
		r.ErrorContains(err, "late")
		r.ErrorContains(err, "fill this end's memory")
		done := make(chan error, 1)
		go func() {
			b, err := l.Rd.Read(ctx)
			done <- errors.Join(err, l.Rd.Free(b))
		}()
		l.Free(kept)
		r.NoError(<-done)
		l.Close()
	})
}
