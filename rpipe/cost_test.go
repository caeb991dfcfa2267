package rpipe_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/trace"
)

// alone runs a test on a pipe of one rank to itself, whose work requests are
// counted: nothing else posts any.
func alone(t *testing.T, c testjob.Config, f func(ctx context.Context, r *testjob.Rank, l *loopback)) {
	var traced *trace.Provider
	spy := &spy{}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f(ctx, r, &loopback{ctx: ctx, r: r, trace: traced, spy: spy})
	},
		runtime.WithWrap(func(p driver.Provider) driver.Provider {
			if spy.Provider = p; c.NIC {
				spy.Provider = faulty.New(p, deviceLike)
			}
			traced = trace.New(spy)
			return traced
		}))
}

var (
	queued = testjob.Config{Provider: "loop", Queued: true, Ranks: 1}
	mapped = testjob.Config{Provider: "loop", Ranks: 1}
	nic    = testjob.Config{Provider: "loop", NIC: true, Queued: true, Ranks: 1}
)

// deviceLike is a device that maps nothing and knows registered memory only.
var deviceLike = faulty.Plan{HideMapper: true, HideCanceler: true, HideExtendedAtomics: true, HideAppliedWrites: true,
	HideCoherentAtomics: true, NeedLocalKeys: true, MaxInline: 256}

// A loopback is a rank's pipe to itself.
type loopback struct {
	ctx   context.Context
	r     *testjob.Rank
	trace *trace.Provider
	spy   *spy
	w     *rpipe.Writer[byte]
	rd    *rpipe.Reader[byte]
}

// open opens the pipe and connects both ends. Announcements that are not pressing wait
// until the test asks for them.
func (l *loopback) open(opts ...rpipe.Option) {
	opts = append(opts, rpipe.WithoutReminder())
	var err error
	l.w, err = rpipe.OpenWriter[byte](l.ctx, l.r.World, 0, opts...)
	l.r.NoError(err)
	l.rd, err = rpipe.OpenReader[byte](l.ctx, l.r.World, 0, opts...)
	l.r.NoError(err)
	l.free(l.read(l.write(l.alloc(1))))
	l.r.NoError(l.rd.Sync(l.ctx))
	l.r.NoError(l.w.Flush(l.ctx))
}

// close closes both ends, each of which waits for the other.
func (l *loopback) close() {
	done := make(chan error, 1)
	go func() { done <- l.w.Close(l.ctx) }()
	for _, err := range l.rd.All(l.ctx) {
		l.r.NoError(err)
	}
	l.r.NoError(<-done)
	l.r.NoError(l.rd.Close(l.ctx))
}

func (l *loopback) alloc(n int) rpipe.Block[byte] {
	b, err := l.w.Alloc(l.ctx, n)
	l.r.NoError(err)
	return b
}

func (l *loopback) write(b rpipe.Block[byte]) rpipe.Block[byte] {
	l.r.NoError(l.w.Write(l.ctx, b))
	return b
}

// read reads the block that comes next, which may have been written as another.
func (l *loopback) read(rpipe.Block[byte]) rpipe.Block[byte] {
	b, err := l.rd.Read(l.ctx)
	l.r.NoError(err)
	return b
}

func (l *loopback) free(b rpipe.Block[byte]) { l.r.NoError(l.rd.Free(b)) }

// cost counts the work requests that f posts.
func (l *loopback) cost(f func()) trace.Counts {
	l.trace.Reset()
	f()
	return l.trace.Snapshot().Total
}

func TestAllocPostsNothingWhereSynchronizationIsDeferred(t *testing.T) {
	for _, c := range []testjob.Config{queued, nic} {
		alone(t, c, func(_ context.Context, r *testjob.Rank, l *loopback) {
			l.open(rpipe.WithBlocks(100))
			l.cost(func() {
				for range 5 {
					var freed []rpipe.Block[byte]
					for range 40 {
						freed = append(freed, l.read(l.write(l.alloc(100))))
					}
					for _, b := range freed {
						l.free(b)
					}
					r.NoError(l.rd.Sync(l.ctx))
					r.NoError(l.w.Flush(l.ctx))
					cost := l.cost(func() { r.NoError(l.w.Free(l.alloc(64))) })
					r.Zero(cost.Requests(), "tags are taken in by loads")
				}
			})
			l.close()
		})
	}
}

func TestAllocIsOneReadWhereSynchronizationIsImmediate(t *testing.T) {
	for _, policy := range []rpipe.Policy{rpipe.BestFit{}, rpipe.WorstFit{}} {
		alone(t, queued, func(_ context.Context, r *testjob.Rank, l *loopback) {
			l.open(rpipe.WithPolicy(policy), rpipe.WithBlocks(300))
			for i := range 500 { // some laps of the ring of tags
				var b rpipe.Block[byte]
				cost := l.cost(func() { b = l.alloc(10 + i%200) })
				r.EqualValues(1, cost.Requests())
				r.EqualValues(1, cost.Posted[driver.OpRead])
				l.write(b)
				b = l.read(b)
				cost = l.cost(func() { l.free(b) })
				r.Zero(cost.Requests(), "Free posts nothing")
			}
			l.close()
		})
	}
}

func TestManyFreesAreOneWrite(t *testing.T) {
	for _, c := range []testjob.Config{queued, nic} {
		alone(t, c, func(_ context.Context, r *testjob.Rank, l *loopback) {
			l.open(rpipe.WithWidth(100))
			var blocks []rpipe.Block[byte]
			for range 40 {
				blocks = append(blocks, l.read(l.write(l.alloc(64))))
			}
			r.NoError(l.rd.Sync(l.ctx))
			tags := l.w.Stats().Tags
			cost := l.cost(func() {
				for i := range blocks { // neighbours, in disorder
					l.free(blocks[i*7%40])
				}
				r.NoError(l.rd.Sync(l.ctx))
			})
			r.EqualValues(1, cost.PostCalls)
			r.EqualValues(2, cost.Requests(), "tags, and the flag behind them")
			r.NoError(l.w.Flush(l.ctx))
			r.NoError(l.w.Free(l.alloc(1)))
			r.EqualValues(1, l.w.Stats().Tags-tags, "neighbours became one range")
			l.close()
		})
	}
}

// A ring of blocks could not give B's memory away while C is held.
func TestAFreedBlockBetweenHeldOnesIsUsedAgain(t *testing.T) {
	for _, c := range []testjob.Config{mapped, queued, nic} {
		for _, policy := range policies {
			alone(t, c, func(_ context.Context, r *testjob.Rank, l *loopback) {
				l.open(rpipe.WithPolicy(policy), rpipe.WithHeap(3*1024))
				var a, b, c = l.alloc(1024), l.alloc(1024), l.alloc(1024)
				for _, block := range []rpipe.Block[byte]{a, b, c} {
					l.write(block)
				}
				readA, readB, readC := l.read(a), l.read(b), l.read(c)
				readA.Mem()[0], readC.Mem()[0] = 'a', 'c'
				l.free(readB)
				r.NoError(l.rd.Sync(l.ctx))
				again := l.alloc(1024)
				r.Equal(b.Addr().Offset(), again.Addr().Offset())
				r.NotEqual(b.Addr(), again.Addr())
				again.Mem()[0] = 'B'
				l.write(again)
				readAgain := l.read(again)
				r.Equal("aBc", string([]byte{readA.Mem()[0], readAgain.Mem()[0], readC.Mem()[0]}))
				r.ErrorIs(l.rd.Free(readB), rpipe.ErrStale)
				l.close()
			})
		}
	}
}

func TestAWriteIsOnePostFromTheBlocksOwnMemory(t *testing.T) {
	for _, c := range []testjob.Config{queued, nic} {
		for _, size := range []int{1, 64, 4096, 100_000} {
			alone(t, c, func(_ context.Context, r *testjob.Rank, l *loopback) {
				l.open()
				b := l.alloc(size)
				b.Mem()[0] = 9
				l.spy.start()
				cost := l.cost(func() { l.write(b) })
				r.EqualValues(1, cost.PostCalls)
				flag := 1 // devices whose writes are silent send a notice with it
				r.EqualValues(1+flag, cost.Requests())
				r.Same(&b.Mem()[0], &l.spy.stop()[0].Mem[0], "the request's local address is Mem's")
				read := l.read(b)
				r.EqualValues(9, read.Mem()[0])
				l.free(read)
				l.close()
			})
		}
	}
}

func TestTwoPutsAreTwoPosts(t *testing.T) {
	alone(t, queued, func(_ context.Context, r *testjob.Rank, l *loopback) {
		l.open(rpipe.WithTwoPuts())
		b := l.alloc(1000)
		cost := l.cost(func() { l.write(b) })
		r.EqualValues(2, cost.PostCalls)
		r.EqualValues(2, cost.Requests())
		l.free(l.read(b))
		l.close()
	})
}

func TestThePullersReadIsOneReadAndTheWriteAFlagAlone(t *testing.T) {
	alone(t, queued, func(_ context.Context, r *testjob.Rank, l *loopback) {
		l.open(rpipe.WithPull())
		b := l.alloc(1000)
		cost := l.cost(func() { l.write(b) })
		r.EqualValues(1, cost.Requests())
		r.EqualValues(8, cost.Bytes[driver.OpWrite])
		var read rpipe.Block[byte]
		cost = l.cost(func() { read = l.read(b) })
		r.EqualValues(1, cost.Posted[driver.OpRead])
		r.EqualValues(1, cost.Requests())
		l.free(read)
		l.close()
	})
}

func TestTinyBlocksArePulledByAnAtomicWhereAskedFor(t *testing.T) {
	alone(t, queued, func(_ context.Context, r *testjob.Rank, l *loopback) {
		l.open(rpipe.WithPull(), rpipe.WithAtomicReads(4))
		for n, op := range map[int]driver.Opcode{1: driver.OpFetchAdd, 4: driver.OpFetchAdd, 5: driver.OpRead, 100: driver.OpRead} {
			b := l.alloc(n)
			want := bytes.Repeat([]byte{byte(200 + n)}, n)
			copy(b.Mem(), want)
			l.write(b)
			var read rpipe.Block[byte]
			cost := l.cost(func() { read = l.read(b) })
			r.EqualValues(1, cost.Posted[op], "%d bytes", n)
			r.EqualValues(1, cost.Requests())
			r.Equal(want, read.Mem())
			l.free(read)
		}
		l.close()
	})
}

func TestMappedEndsPostNothing(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			c := testjob.Config{Provider: "loop", Ranks: 2}
			var traces []*trace.Provider
			var mu sync.Mutex
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				ends(ctx, r, func(w *rpipe.Writer[byte]) {
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

func TestNothingIsAllocatedPerOperation(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{mapped, queued} {
		for name, opts := range modes {
			t.Run(c.String()+"/"+name, func(t *testing.T) {
				alone(t, c, func(ctx context.Context, r *testjob.Rank, l *loopback) {
					l.open(append(opts, rpipe.WithWidth(8), rpipe.WithBlocks(16))...)
					l.trace.Reset()
					allocs := testing.AllocsPerRun(500, func() {
						b, _ := l.w.Alloc(ctx, 100)
						_ = l.w.Write(ctx, b)
						b, _ = l.rd.Read(ctx)
						_ = l.rd.Free(b)
					})
					r.Zero(allocs)
					l.close()
				})
			})
		}
	}
}
