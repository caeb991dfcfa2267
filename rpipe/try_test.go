package rpipe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// tried makes a Try call until it succeeds.
func tried(ctx context.Context, r *testjob.Rank, call func() error) {
	for {
		err := call()
		if !errors.Is(err, rpipe.ErrWouldBlock) {
			r.NoError(err)
			return
		}
		r.NoError(ctx.Err())
		goruntime.Gosched()
	}
}

// eachMatrix runs f on the matrix of configurations, in which all ranks but two are idle.
func eachMatrix(t *testing.T, f pipeBody) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		eachLink(t, func(t *testing.T, over func(f pipeBody) pipeBody, opts []rpipe.Option) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) { over(f)(ctx, r, opts) })
		})
	})
}

// TestTryCallsCarryAllBlocksInOrder fills the pipe before the reader begins.
func TestTryCallsCarryAllBlocksInOrder(t *testing.T) {
	eachMatrix(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		const blocks = 60
		if r.Me > 1 {
			r.NoError(r.World.Barrier(ctx))
		}
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[int]) {
			r.NoError(w.Connect(ctx))
			sent := 0
			for w.TrySend([]int{sent}) == nil {
				sent++
			}
			r.Equal(2, sent)
			r.NoError(r.World.Barrier(ctx))
			for ; sent < blocks; sent++ {
				var b rpipe.Block[int]
				tried(ctx, r, func() (err error) { b, err = w.TryAlloc(1 + sent%3); return err })
				for j := range b.Mem() {
					b.Mem()[j] = sent
				}
				tried(ctx, r, func() error { return w.TryWrite(b) })
			}
		}, func(rd *rpipe.Reader[int]) {
			r.NoError(rd.Connect(ctx))
			r.NoError(r.World.Barrier(ctx))
			for i := range blocks {
				var b rpipe.Block[int]
				tried(ctx, r, func() (err error) { b, err = rd.TryRead(); return err })
				if i >= 2 {
					r.Len(b.Mem(), 1+i%3)
				}
				for _, v := range b.Mem() {
					r.Equal(i, v)
				}
				r.NoError(rd.Free(b))
			}
			var err error
			for err = rpipe.ErrWouldBlock; errors.Is(err, rpipe.ErrWouldBlock); {
				_, err = rd.TryRead()
			}
			r.Equal(io.EOF, err)
		}, append(opts, rpipe.WithWidth(2), rpipe.WithHeap(128))...)
	})
}

func TestTryCallsReturnErrWouldBlockWithoutReader(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		switch r.Me {
		case 0:
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			_, err = w.TryAlloc(1)
			r.Equal(rpipe.ErrWouldBlock, err)
			r.Equal(rpipe.ErrWouldBlock, w.TrySend([]int{1}))
			_, err = w.TryAlloc(-1)
			r.NotErrorIs(err, rpipe.ErrWouldBlock)
			r.NoError(r.World.Barrier(ctx)) // the reader opens
			r.NoError(w.Connect(ctx))
			r.NoError(w.TrySend([]int{42}))
			r.NoError(w.Close(ctx))
		case 1:
			r.NoError(r.World.Barrier(ctx))
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0, opts...)
			r.NoError(err)
			r.NoError(rd.Connect(ctx))
			got := make([]int, 1)
			_, err = rd.Recv(ctx, got)
			r.NoError(err)
			r.Equal(42, got[0])
			_, err = rd.Read(ctx)
			r.Equal(io.EOF, err)
			r.NoError(rd.Close(ctx))
		}
	})
}

// TestTrySendCopiesNothingBeyondTheWidth sends two blocks through a pipe that is one wide.
func TestTrySendCopiesNothingBeyondTheWidth(t *testing.T) {
	for name, c := range map[string]testjob.Config{"mapped": pipetest.Mapped, "queued": pipetest.Queued} {
		t.Run(name, func(t *testing.T) {
			pipetest.Alone(t, c, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
				l.Open(rpipe.WithWidth(1), rpipe.WithHeap(16<<10))
				r.NoError(l.W.TrySend([]byte{1}))
				src := bytes.Repeat([]byte{7}, 2<<10)
				r.Equal(rpipe.ErrWouldBlock, l.W.TrySend(src))
				r.False(bytes.Contains(pipetest.WriterEnd(l.W).Mem, src))
				l.Close()
				var e *rpipe.OpError
				r.ErrorAs(l.W.TrySend(src), &e)
				r.Equal("TrySend", e.Op)
			})
		})
	}
}

// A writer that finds no room tells the reader once, and posts no more until the reader
// has responded. The reader then announces what it reads and frees at once.
func TestTryCallsTellReaderOnce(t *testing.T) {
	for name, opt := range map[string]rpipe.Option{"width": rpipe.WithWidth(2), "memory": rpipe.WithHeap(128)} {
		t.Run(name, func(t *testing.T) {
			pipetest.Alone(t, pipetest.Queued, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
				l.Open(opt)
				const size = 64
				l.Write(l.Alloc(size))
				l.Write(l.Alloc(size))
				full := l.Cost(func() {
					for range 10 {
						r.Equal(rpipe.ErrWouldBlock, l.W.TrySend(make([]byte, size)))
					}
				})
				r.EqualValues(1, full.Requests())
				l.Free(l.Read(rpipe.Block[byte]{}))
				tried(ctx, r, func() error { return l.W.TrySend(make([]byte, size)) })
				l.Close()
			})
		})
	}
}

// TestCloseWriteReturnsWithoutReader fills a pipe to its width, so that the close has
// no room but its own.
func TestCloseWriteReturnsWithoutReader(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		opts = append(opts, rpipe.WithWidth(1), rpipe.WithHeap(128))
		switch r.Me {
		case 0:
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			r.NoError(w.Send(ctx, []int{42}))
			kept, err := w.Alloc(ctx, 1)
			r.NoError(err)
			r.NoError(w.CloseWrite(ctx))
			r.NoError(w.CloseWrite(ctx))
			r.ErrorIs(w.Write(ctx, kept), rpipe.ErrClosed)
			r.ErrorIs(w.TryWrite(kept), rpipe.ErrClosed)
			_, err = w.Alloc(ctx, 1)
			r.ErrorIs(err, rpipe.ErrClosed)
			_, err = w.TryAlloc(1)
			r.ErrorIs(err, rpipe.ErrClosed)
			r.Equal(1, w.Stats().InFlight)
			r.NoError(r.World.Barrier(ctx)) // now the reader reads
			r.NoError(w.Close(ctx))
		case 1:
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0, opts...)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			b, err := rd.Read(ctx)
			r.NoError(err)
			r.Equal([]int{42}, b.Mem())
			_, err = rd.Read(ctx)
			r.Equal(io.EOF, err)
			r.NoError(rd.Close(ctx))
		}
	})
}

func TestReaderOpenedAfterCloseWriteReadsEOF(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		if r.Me == 0 {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			r.NoError(w.CloseWrite(ctx))
			r.ErrorIs(w.TrySend([]int{1}), rpipe.ErrClosed)
			r.NoError(r.World.Barrier(ctx)) // now the reader opens
			r.NoError(w.Close(ctx))
			return
		}
		r.NoError(r.World.Barrier(ctx))
		if r.Me == 1 {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0, opts...)
			r.NoError(err)
			_, err = rd.Read(ctx)
			r.Equal(io.EOF, err)
			r.NoError(rd.Close(ctx))
		}
	})
}

func TestTryCallsAllocateNothing(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued} {
		for name, opts := range map[string][]rpipe.Option{"push": nil, "pull": {rpipe.WithPull()}} {
			t.Run(fmt.Sprint(c, "/", name), func(t *testing.T) {
				pipetest.Alone(t, c, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
					l.Open(append(opts, rpipe.WithWidth(2), rpipe.WithBlocks(16))...)
					src := make([]byte, 100)
					r.Zero(r.Allocs(200, func() {
						b, err := l.W.TryAlloc(100)
						_ = errors.Join(err, l.W.TryWrite(b), l.W.TrySend(src))
						_ = l.W.TrySend(src) // there is no room
						for range 2 {
							b, err = l.Rd.Read(ctx)
							_ = errors.Join(err, l.Rd.Free(b))
						}
						_, _ = l.Rd.TryRead() // there is no block
					}))
					l.Close()
				})
			})
		}
	}
}

// TryRead finds the end while the queue to the writer is full, and room comes only after
// TryRead has returned.
func TestTryReadReturnsEOFBesideFullQueue(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
				r.NoError(w.Connect(ctx))
				r.NoError(w.CloseWrite(ctx))
				r.NoError(r.World.Barrier(ctx))
			}, func(rd *rpipe.Reader[byte]) {
				r.NoError(rd.Connect(ctx))
				r.NoError(r.World.Barrier(ctx))
				var full atomic.Bool
				full.Store(true)
				pipetest.Clog(pipetest.ReaderEnd(rd), &full)
				_, err := rd.TryRead()
				r.Equal(io.EOF, err)
				full.Store(false) // Close of the writer waits for the word
			})
		})
	})
}
