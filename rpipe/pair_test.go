package rpipe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

func TestNamePairsPipesInAnyOrderOfOpening(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const n = 5
			if r.Me == 0 {
				for i := range n {
					w, err := rpipe.OpenWriter[int64](ctx, r.World, 1, rpipe.WithName(fmt.Sprint("p", i)))
					r.NoError(err)
					r.NoError(w.Send(ctx, []int64{int64(i)}))
					defer func() { r.NoError(w.Close(ctx)) }()
				}
				return
			}
			var readers [n]*rpipe.Reader[int64]
			for i := n - 1; i >= 0; i-- {
				rd, err := rpipe.OpenReader[int64](ctx, r.World, 0, rpipe.WithName(fmt.Sprint("p", i)))
				r.NoError(err)
				readers[i] = rd
			}
			for i := n - 1; i >= 0; i-- { // as the writer closes them
				rd := readers[i]
				v := make([]int64, 1)
				_, err := rd.Recv(ctx, v)
				r.NoError(err)
				r.EqualValues(i, v[0])
				_, err = rd.Read(ctx)
				r.Equal(io.EOF, err)
				r.NoError(rd.Close(ctx))
			}
		})
	})
}

func TestKthWriterOfNameMeetsKthReader(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			// All to all, some times over, under one name: ranks are a part of it.
			for round := range 3 {
				var writers []*rpipe.Writer[int]
				for to := range r.N {
					w, err := rpipe.OpenWriter[int](ctx, r.World, to)
					r.NoError(err)
					r.Equal(fmt.Sprintf("pipe#%d", round), w.Name())
					writers = append(writers, w)
				}
				var readers []*rpipe.Reader[int]
				for from := range r.N {
					rd, err := rpipe.OpenReader[int](ctx, r.World, from)
					r.NoError(err)
					readers = append(readers, rd)
				}
				for to, w := range writers {
					r.NoError(w.Send(ctx, []int{round, r.Me, to}))
				}
				for from, rd := range readers {
					got := make([]int, 3)
					_, err := rd.Recv(ctx, got)
					r.NoError(err)
					r.Equal([]int{round, from, r.Me}, got)
				}
				var ends sync.WaitGroup
				for i := range readers {
					ends.Go(func() { _, _ = readers[i].Read(ctx) }) // up to the end
				}
				for _, w := range writers {
					r.NoError(w.Close(ctx))
				}
				ends.Wait()
				for _, rd := range readers {
					r.NoError(rd.Close(ctx))
				}
			}
		})
	})
}

func TestTeamPairsOnlyItsOwnPipes(t *testing.T) {
	testjob.Each(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			reversed, err := r.World.Split(ctx, 0, -r.Me)
			r.NoError(err)
			for i, team := range []*runtime.Team{r.World, reversed} {
				me := team.Rank()
				w, err := rpipe.OpenWriter[int](ctx, team, (me+1)%r.N)
				r.NoError(err)
				rd, err := rpipe.OpenReader[int](ctx, team, (me+r.N-1)%r.N)
				r.NoError(err)
				r.NoError(w.Send(ctx, []int{i, me}))
				got := make([]int, 2)
				_, err = rd.Recv(ctx, got)
				r.NoError(err)
				r.Equal([]int{i, (me + r.N - 1) % r.N}, got)
				end := make(chan error, 1)
				go func() { _, err := rd.Read(ctx); end <- err }()
				r.NoError(w.Close(ctx))
				r.ErrorIs(<-end, io.EOF)
			}
		})
	})
}

func TestErrMismatchNamesOptionsOfBothEndpoints(t *testing.T) {
	for name, test := range map[string]struct {
		writer, reader []rpipe.Option
		says           []string
	}{
		"width":  {[]rpipe.Option{rpipe.WithWidth(3)}, []rpipe.Option{rpipe.WithWidth(500)}, []string{"width 3", "width 500"}},
		"heap":   {[]rpipe.Option{rpipe.WithHeap(6400)}, nil, []string{"heap 6400", "heap 1048576"}},
		"blocks": {nil, []rpipe.Option{rpipe.WithBlocks(7)}, []string{"1024 blocks", "7 blocks"}},
		"sync":   {[]rpipe.Option{rpipe.WithPolicy(rpipe.BestFit{})}, nil, []string{"immediate", "deferred"}},
		"pull":   {nil, []rpipe.Option{rpipe.WithPull()}, []string{"pull", "push"}},
	} {
		testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
			t.Run(name, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					var err error
					if r.Me == 0 {
						w, openErr := rpipe.OpenWriter[int](ctx, r.World, 1, test.writer...)
						r.NoError(openErr)
						_, err = w.Alloc(ctx, 1)
						defer func() { r.NoError(w.Close(ctx)) }()
						_, again := w.Alloc(ctx, 1)
						r.ErrorIs(again, runtime.ErrMismatch)
					} else {
						rd, openErr := rpipe.OpenReader[int](ctx, r.World, 0, test.reader...)
						r.NoError(openErr)
						_, err = rd.Read(ctx)
						defer func() { r.NoError(rd.Close(ctx)) }()
					}
					r.ErrorIs(err, runtime.ErrMismatch)
					for _, s := range test.says {
						r.ErrorContains(err, s)
					}
				})
			})
		})
	}
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		var err error
		if r.Me == 0 {
			w, openErr := rpipe.OpenWriter[float64](ctx, r.World, 1)
			r.NoError(openErr)
			err = w.Send(ctx, []float64{1})
		} else {
			rd, openErr := rpipe.OpenReader[struct{ A, B int32 }](ctx, r.World, 0)
			r.NoError(openErr)
			_, err = rd.Read(ctx)
		}
		r.ErrorIs(err, runtime.ErrMismatch)
		r.ErrorContains(err, "float64")
		r.ErrorContains(err, "struct{0:int32,4:int32}")
	})
}

func TestUnusedEndpointClosesWithoutPeer(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 1, rpipe.WithName("writer first"))
				r.NoError(err)
				r.NoError(w.Close(ctx))
				rd, err := rpipe.OpenReader[int](ctx, r.World, 1, rpipe.WithName("reader first"))
				r.NoError(err)
				r.NoError(rd.Close(ctx))
				r.NoError(r.World.Barrier(ctx))
				return
			}
			r.NoError(r.World.Barrier(ctx))
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0, rpipe.WithName("writer first"))
			r.NoError(err)
			_, err = rd.Read(ctx)
			r.Equal(io.EOF, err)
			r.NoError(rd.Close(ctx))
			w, err := rpipe.OpenWriter[int](ctx, r.World, 0, rpipe.WithName("reader first"))
			r.NoError(err)
			r.ErrorIs(w.Send(ctx, []int{1}), rpipe.ErrClosed)
			r.NoError(w.Close(ctx))
		})
	})
}

func TestTryReadReturnsEOFOfUnusedWriter(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 1)
				r.NoError(err)
				r.NoError(w.Close(ctx))
				return
			}
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0)
			r.NoError(err)
			for err = rpipe.ErrWouldBlock; errors.Is(err, rpipe.ErrWouldBlock) && ctx.Err() == nil; {
				_, err = rd.TryRead()
			}
			r.Equal(io.EOF, err)
			r.NoError(rd.Close(ctx))
		})
	})
}

// TestClosedPipesReleaseMemory opens and closes many pipes whose memory would not fit the
// heap together. Ends that linger for their peers' last words leave in the end.
func TestClosedPipesReleaseMemory(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for name, opts := range pipetest.Modes {
			t.Run(name, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) { openAndClose(ctx, r, opts) }, runtime.WithHeap(8<<20))
			})
		}
	})
}

func openAndClose(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	const pipes, alone, little = 30, 15, 300 << 10
	leaveAlone(ctx, r, alone)
	opts = append(opts, rpipe.WithHeap(512<<10))
	if r.Me == 0 {
		for i := range pipes {
			w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
			r.NoError(err)
			r.NoError(w.Send(ctx, make([]byte, i)))
			r.NoError(w.Close(ctx))
		}
		r.Less(pipetest.Used(r.World), int64(little))
		return
	}
	var last *rpipe.Reader[byte]
	for i := range pipes {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		n, err := rd.Recv(ctx, nil)
		r.NoError(err)
		r.Equal(i, n)
		_, err = rd.Read(ctx)
		r.Equal(io.EOF, err)
		r.NoError(rd.Close(ctx))
		last = rd
	}
	for pipetest.ReaderEnd(last).Registry.Lingering() > alone {
		r.NoError(ctx.Err())
		team.Of(r.World).Progress()
		time.Sleep(100 * time.Microsecond)
	}
	r.Less(pipetest.Used(r.World), int64(little))
}

// TestOpeningTakesTheMemoryOfManyClosedEnds closes more pipes than an opening looks at, and opens as many at once.
func TestOpeningTakesTheMemoryOfManyClosedEnds(t *testing.T) {
	pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		const pipes = 28
		for range 20 {
			var writers []*rpipe.Writer[byte]
			var readers []*rpipe.Reader[byte]
			for range pipes {
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, rpipe.WithHeap(256<<10), rpipe.WithWidth(1), rpipe.WithBlocks(1))
				r.NoError(err)
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, rpipe.WithHeap(256<<10), rpipe.WithWidth(1), rpipe.WithBlocks(1))
				r.NoError(err)
				readers, writers = append(readers, rd), append(writers, w)
			}
			for i, rd := range readers {
				r.NoError(writers[i].CloseWrite(ctx))
				_, err := rd.Read(ctx)
				r.Equal(io.EOF, err)
				r.NoError(rd.Close(ctx)) // it lingers for the writer's last word
			}
			for _, w := range writers {
				r.NoError(w.Close(ctx))
			}
		}
	}, runtime.WithHeap(8<<20))
}

// leaveAlone leaves closed ends of little memory, whose peers never open. So openings seldom look at closed ends.
func leaveAlone(ctx context.Context, r *testjob.Rank, n int) {
	for range n {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1-r.Me, rpipe.WithName("alone"), rpipe.WithHeap(64), rpipe.WithWidth(1), rpipe.WithBlocks(1))
		r.NoError(err)
		r.NoError(w.Close(ctx))
	}
}

// A writer that closes without having written waits for no more than a Read.
func TestUnusedWriterClosesOnceReaderReads(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				r.NoError(r.World.Barrier(ctx))
				w, err := rpipe.OpenWriter[int](ctx, r.World, 1)
				r.NoError(err)
				r.NoError(w.Close(ctx))
				r.NoError(r.World.Barrier(ctx))
				return
			}
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			for err = rpipe.ErrWouldBlock; errors.Is(err, rpipe.ErrWouldBlock); {
				r.NoError(ctx.Err())
				_, err = rd.TryRead()
			}
			r.Equal(io.EOF, err)
			r.NoError(r.World.Barrier(ctx), "before the reader closes")
			r.NoError(rd.Close(ctx))
		})
	})
}

// TestCauseOfCanceledReadBreaksNoPipe: a wait for the other end may
// end with the error of another pipe, say, and the pipe is none the worse.
func TestCauseOfCanceledReadBreaksNoPipe(t *testing.T) {
	use := func(ctx context.Context, r *testjob.Rank, opts ...rpipe.Option) {
		if r.Me == 1 {
			r.NoError(r.World.Barrier(ctx)) // the reader has waited in vain
			w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
			r.NoError(err)
			r.NoError(w.Send(ctx, []byte{5}))
			r.NoError(w.Close(ctx))
			return
		}
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		for _, cause := range []error{runtime.ErrMismatch, rpipe.ErrCorrupt} {
			ended, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Millisecond, func() { cancel(cause) })
			_, err = rd.Read(ended)
			r.ErrorIs(err, cause)
		}
		r.NoError(r.World.Barrier(ctx))
		b, err := rd.Read(ctx)
		r.NoError(err)
		r.Equal([]byte{5}, b.Mem())
		r.NoError(rd.Free(b))
		r.NoError(rd.Close(ctx))
	}
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			use(ctx, r)
			pool, err := rpipe.OverWindow(ctx, r.World, 2)
			r.NoError(err)
			use(ctx, r, rpipe.WithWindow(pool))
			r.NoError(pool.Close(ctx))
		})
	})
}
