package rpipe_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
)

func TestAllocPostsNothingWithDeferredSync(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Queued, pipetest.NIC} {
		pipetest.Alone(t, c, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
			l.Open(rpipe.WithBlocks(100))
			l.Cost(func() {
				for range 5 {
					var freed []rpipe.Block[byte]
					for range 40 {
						freed = append(freed, l.Read(l.Write(l.Alloc(100))))
					}
					for _, b := range freed {
						l.Free(b)
					}
					r.NoError(l.Rd.Sync(l.Ctx))
					r.NoError(l.W.Flush(l.Ctx))
					cost := l.Cost(func() { r.NoError(l.W.Free(l.Alloc(64))) })
					r.Zero(cost.Requests(), "tags are taken in by loads")
				}
			})
			l.Close()
		})
	}
}

func TestAllocPostsOneReadWithImmediateSync(t *testing.T) {
	for _, policy := range []rpipe.Policy{rpipe.BestFit{}, rpipe.WorstFit{}} {
		pipetest.Alone(t, pipetest.Queued, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
			l.Open(rpipe.WithPolicy(policy), rpipe.WithBlocks(300))
			for i := range 500 { // some laps of the ring of tags
				var b rpipe.Block[byte]
				cost := l.Cost(func() { b = l.Alloc(10 + i%200) })
				r.EqualValues(1, cost.Requests())
				r.EqualValues(1, cost.Posted[driver.OpRead])
				l.Write(b)
				b = l.Read(b)
				cost = l.Cost(func() { l.Free(b) })
				r.Zero(cost.Requests(), "Free posts nothing")
			}
			l.Close()
		})
	}
}

func TestManyFreesPostOneWrite(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Queued, pipetest.NIC} {
		pipetest.Alone(t, c, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
			l.Open(rpipe.WithWidth(100))
			var blocks []rpipe.Block[byte]
			for range 40 {
				blocks = append(blocks, l.Read(l.Write(l.Alloc(64))))
			}
			r.NoError(l.Rd.Sync(l.Ctx))
			tags := l.W.Stats().Tags
			cost := l.Cost(func() {
				for i := range blocks { // neighbors, in disorder
					l.Free(blocks[i*7%40])
				}
				r.NoError(l.Rd.Sync(l.Ctx))
			})
			r.EqualValues(1, cost.PostCalls)
			r.EqualValues(2, cost.Requests(), "tags, and the flag behind them")
			r.NoError(l.W.Flush(l.Ctx))
			r.NoError(l.W.Free(l.Alloc(1)))
			r.EqualValues(1, l.W.Stats().Tags-tags, "neighbors became one range")
			l.Close()
		})
	}
}

// A ring of blocks could not give B's memory away while C is held.
func TestAllocReusesFreedBlockBetweenHeldBlocks(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued, pipetest.NIC} {
		for _, policy := range policies {
			pipetest.Alone(t, c, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
				l.Open(rpipe.WithPolicy(policy), rpipe.WithHeap(3*1024))
				var a, b, c = l.Alloc(1024), l.Alloc(1024), l.Alloc(1024)
				for _, block := range []rpipe.Block[byte]{a, b, c} {
					l.Write(block)
				}
				readA, readB, readC := l.Read(a), l.Read(b), l.Read(c)
				readA.Mem()[0], readC.Mem()[0] = 'a', 'c'
				l.Free(readB)
				r.NoError(l.Rd.Sync(l.Ctx))
				again := l.Alloc(1024)
				r.Equal(b.Addr().Offset(), again.Addr().Offset())
				r.NotEqual(b.Addr(), again.Addr())
				again.Mem()[0] = 'B'
				l.Write(again)
				readAgain := l.Read(again)
				r.Equal("aBc", string([]byte{readA.Mem()[0], readAgain.Mem()[0], readC.Mem()[0]}))
				r.ErrorIs(l.Rd.Free(readB), rpipe.ErrStale)
				l.Close()
			})
		}
	}
}

func TestWritePostsOncePerBlockWithoutCopy(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Queued, pipetest.NIC} {
		for _, size := range []int{1, 64, 4096, 100_000} {
			pipetest.Alone(t, c, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
				l.Open()
				b := l.Alloc(size)
				b.Mem()[0] = 9
				l.Spy.Start()
				cost := l.Cost(func() { l.Write(b) })
				r.EqualValues(1, cost.PostCalls)
				flag := 1 // devices whose writes are silent send a notice with it
				r.EqualValues(1+flag, cost.Requests())
				r.Same(&b.Mem()[0], &l.Spy.Stop()[0].Mem[0], "the request's local address is Mem's")
				read := l.Read(b)
				r.EqualValues(9, read.Mem()[0])
				l.Free(read)
				l.Close()
			})
		}
	}
}

func TestWriteWithTwoPutsPostsTwice(t *testing.T) {
	pipetest.Alone(t, pipetest.Queued, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open(rpipe.WithTwoPuts())
		b := l.Alloc(1000)
		cost := l.Cost(func() { l.Write(b) })
		r.EqualValues(2, cost.PostCalls)
		r.EqualValues(2, cost.Requests())
		l.Free(l.Read(b))
		l.Close()
	})
}

func TestPullPostsFlagAndOneRead(t *testing.T) {
	pipetest.Alone(t, pipetest.Queued, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open(rpipe.WithPull())
		b := l.Alloc(1000)
		cost := l.Cost(func() { l.Write(b) })
		r.EqualValues(1, cost.Requests())
		r.EqualValues(8, cost.Bytes[driver.OpWrite])
		var read rpipe.Block[byte]
		cost = l.Cost(func() { read = l.Read(b) })
		r.EqualValues(1, cost.Posted[driver.OpRead])
		r.EqualValues(1, cost.Requests())
		l.Free(read)
		l.Close()
	})
}

func TestPullFetchesTinyBlocksByAtomic(t *testing.T) {
	pipetest.Alone(t, pipetest.Queued, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open(rpipe.WithPull(), rpipe.WithAtomicReads(4))
		for n, op := range map[int]driver.Opcode{1: driver.OpFetchAdd, 4: driver.OpFetchAdd, 5: driver.OpRead, 100: driver.OpRead} {
			b := l.Alloc(n)
			want := bytes.Repeat([]byte{byte(200 + n)}, n)
			copy(b.Mem(), want)
			l.Write(b)
			var read rpipe.Block[byte]
			cost := l.Cost(func() { read = l.Read(b) })
			r.EqualValues(1, cost.Posted[op], "%d bytes", n)
			r.EqualValues(1, cost.Requests())
			r.Equal(want, read.Mem())
			l.Free(read)
		}
		l.Close()
	})
}

func TestMappedEndpointsPostNothing(t *testing.T) {
	for name, opts := range pipetest.Modes {
		t.Run(name, func(t *testing.T) {
			c := testjob.Config{Provider: "loop", Ranks: 2}
			var traces []*trace.Provider
			var mu sync.Mutex
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
					r.NoError(w.Send(ctx, []byte("connect")))
					r.NoError(r.World.Barrier(ctx))
					if r.Me == 0 {
						mu.Lock()
						for _, p := range traces {
							p.Reset()
						}
						mu.Unlock()
					}
					for range 100 {
						r.NoError(w.Send(ctx, make([]byte, 3000)))
					}
				}, func(rd *rpipe.Reader[byte]) {
					n, err := rd.Recv(ctx, nil)
					r.NoError(err)
					r.Equal(7, n)
					r.NoError(r.World.Barrier(ctx))
					for b, err := range rd.All(ctx) {
						r.NoError(err)
						r.NoError(rd.Free(b))
					}
				}, append(opts, rpipe.WithHeap(64<<10))...)
				r.NoError(r.World.Barrier(ctx))
				mu.Lock()
				defer mu.Unlock()
				for _, p := range traces {
					total := p.Snapshot().Total
					r.Zero(total.Requests())
				}
			}, runtime.WithWrap(func(p driver.Provider) driver.Provider {
				mu.Lock()
				defer mu.Unlock()
				traces = append(traces, trace.New(p))
				return traces[len(traces)-1]
			}))
		})
	}
}

func TestPipesAllocateNothingPerOperation(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []struct {
		testjob.Config
		lengths []int
	}{{pipetest.Mapped, []int{100, 64 << 10}}, {pipetest.Queued, []int{100}}} {
		for name, opts := range pipetest.Modes {
			t.Run(c.String()+"/"+name, func(t *testing.T) {
				pipetest.Alone(t, c.Config, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
					l.Open(append(opts, rpipe.WithWidth(8), rpipe.WithBlocks(16))...)
					l.Trace.Reset()
					for _, n := range c.lengths {
						r.Zero(r.Allocs(500, func() {
							b, _ := l.W.Alloc(ctx, n)
							_ = l.W.Write(ctx, b)
							b, _ = l.Rd.Read(ctx)
							_ = l.Rd.Free(b)
						}), "%d bytes", n)
					}
					l.Close()
				})
			})
		}
	}
}
