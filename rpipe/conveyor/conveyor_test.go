package conveyor_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// An update of a table that is spread over ranks.
type update struct {
	Index int32
	Value uint32
}

// Every rank updates random places of all ranks' parts of a table, and pulls what
// the others send meanwhile. The sums agree.
func TestRandomUpdatesArriveOnce(t *testing.T) {
	for _, batch := range []int{8, 100, 4096} {
		testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
			pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
				opts := []conveyor.Option{conveyor.WithWindow(over)}
				const size = 128
				updates := pipetest.Fewer(1000)
				v, err := conveyor.Open[update](ctx, r.World, append(opts, conveyor.WithBatch(batch))...)
				r.NoError(err)
				pulled := make(chan []uint32)
				go func() {
					part := make([]uint32, size)
					for u, err := range v.All(ctx) {
						if err != nil {
							break
						}
						part[u.Value.Index] += u.Value.Value
					}
					pulled <- part
				}()
				rnd := rand.New(rand.NewPCG(uint64(r.Me), 7))
				for range updates {
					i := rnd.IntN(size * r.N)
					r.NoError(v.Push(ctx, i/size, update{int32(i % size), uint32(i + r.Me)}))
				}
				r.NoError(v.Finish(ctx))
				part := <-pulled
				want := make([]uint32, size)
				for from := range r.N {
					rnd := rand.New(rand.NewPCG(uint64(from), 7))
					for range updates {
						if i := rnd.IntN(size * r.N); i/size == r.Me {
							want[i%size] += uint32(i + from)
						}
					}
				}
				r.Equal(want, part)
				r.NoError(v.Close(ctx))
				s := v.Stats()
				r.EqualValues(updates, s.Pushed)
			})
		})
	}
}

// One goroutine pushes and pulls in turn, without a wait of its own, where pipes
// are full all the time.
func TestOneGoroutinePushesAndPulls(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []conveyor.Option{conveyor.WithWindow(over)}
			records := pipetest.Fewer(500)
			v, err := conveyor.Open[int64](ctx, r.World, append(opts, conveyor.WithBatch(64), conveyor.WithHeap(128), conveyor.WithWidth(2), conveyor.WithBound(0))...)
			r.NoError(err)
			next := make([]int64, r.N)
			got := 0
			take := func(x int64, from int) {
				r.Equal(next[from], x)
				next[from]++
				got++
			}
			pull := func() {
				x, from, err := v.TryPull()
				r.NoError(ctx.Err())
				if errors.Is(err, rpipe.ErrWouldBlock) {
					goruntime.Gosched() // other ranks share the cores
					return
				}
				r.NoError(err)
				take(x, from)
			}
			for i := range int64(records) {
				for to := range r.N {
					for errors.Is(v.TryPush(to, i), rpipe.ErrWouldBlock) {
						pull()
					}
				}
			}
			for errors.Is(v.TryFlush(), rpipe.ErrWouldBlock) {
				pull()
			}
			for got < records*r.N {
				x, from, err := v.Pull(ctx)
				r.NoError(err)
				take(x, from)
			}
			r.NoError(v.Finish(ctx))
			_, from, err := v.Pull(ctx)
			r.Equal(io.EOF, err)
			r.Equal(-1, from)
			r.NoError(v.Close(ctx))
			r.ErrorIs(v.TryPush(0, 1), rpipe.ErrClosed)
		})
	})
}

// Records leave by themselves when their time is up.
func TestRecordLeavesWithinBound(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []conveyor.Option{conveyor.WithWindow(over)}
			v, err := conveyor.Open[int](ctx, r.World, opts...)
			r.NoError(err)
			for i := range 10 {
				if r.Me == i%2 {
					r.NoError(v.Push(ctx, 1-r.Me, i))
				} else {
					got, from, err := v.Pull(ctx)
					r.NoError(err)
					r.Equal(i, got)
					r.Equal(1-r.Me, from)
				}
			}
			s := v.Stats()
			r.Zero(s.Full)
			r.NoError(v.Finish(ctx))
			_, _, err = v.Pull(ctx)
			r.Equal(io.EOF, err)
			r.NoError(v.Close(ctx))
		})
	})
}

// Many records are one post: by size, and by hand what is left.
func TestFullBatchLeavesInOnePost(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Queued, {Provider: "loop", NIC: true, Atomics: "nic", Ranks: 1}} {
		pipetest.Alone(t, c, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
			const batch = 128
			v, err := conveyor.Open[int64](ctx, r.World, conveyor.WithBatch(8*batch), conveyor.WithBound(0),
				conveyor.WithPipe(pipetest.WithoutAnnouncer()))
			r.NoError(err)
			r.NoError(v.Push(ctx, 0, -1))
			r.NoError(v.Flush(ctx))
			_, _, err = v.Pull(ctx)
			r.NoError(err)
			push := func(n int) {
				for i := range n {
					r.NoError(v.Push(ctx, 0, int64(i)))
				}
			}
			cost := l.Cost(func() { push(batch - 1) })
			r.Zero(cost.Requests())
			cost = l.Cost(func() { push(1) })
			r.EqualValues(2, cost.PostCalls, "block with flag, and the count")
			r.EqualValues(3, cost.Requests())
			cost = l.Cost(func() {
				push(batch / 2)
				r.NoError(v.Flush(ctx))
			})
			r.EqualValues(2, cost.PostCalls)
			r.EqualValues(3, cost.Requests())
			r.Equal(conveyor.Stats{Pushed: 1 + batch + batch/2, Pulled: 1, Full: 1, ByHand: 2}, v.Stats())
			for range batch + batch/2 {
				_, _, err := v.Pull(ctx)
				r.NoError(err)
			}
			r.NoError(v.Close(ctx))
		})
	}
}

func TestConveyorAllocatesNothingPerRecord(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued} {
		t.Run(c.String(), func(t *testing.T) {
			pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
				opts := []conveyor.Option{conveyor.WithWindow(over)}
				v, err := conveyor.Open[update](ctx, r.World, append(opts, conveyor.WithBatch(256))...)
				r.NoError(err)
				round := func() {
					for i := range 32 {
						_ = v.Push(ctx, 0, update{Index: int32(i)})
					}
					for range 32 {
						_, _, _ = v.Pull(ctx)
					}
				}
				round()
				r.Zero(r.Allocs(300, round))
				r.NoError(v.Close(ctx))
			})
		})
	}
}

func TestConveyorReturnsErrRankDeadForOneRank(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			v, err := conveyor.Open[int](ctx, r.World, conveyor.WithBatch(16))
			r.NoError(err)
			if r.Me == 2 {
				r.NoError(v.Push(ctx, 0, 1))
				r.NoError(v.Push(ctx, 1, 1))
				r.Die()
			}
			for err == nil {
				r.NoError(ctx.Err())
				err = v.Push(ctx, 2, 5)
			}
			r.ErrorIs(err, runtime.ErrRankDead)
			r.NoError(v.Push(ctx, 1-r.Me, 8))
			if err := v.Finish(ctx); err != nil { // of what cannot be sent any more
				r.ErrorIs(err, runtime.ErrRankDead)
			}
			sum, dead := 0, 0
			for u, err := range v.All(ctx) {
				if err != nil {
					r.Equal(2, u.From)
					r.ErrorIs(err, runtime.ErrRankDead)
					dead++
					continue
				}
				if u.From != 2 {
					sum += u.Value
				}
			}
			r.Equal(8, sum)
			r.Equal(1, dead)
			_ = v.Close(ctx)
		})
		require.ErrorContains(t, err, "rank 2")
	})
}

func TestConveyorReturnsTypedErrors(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		_, err := conveyor.Open[int](ctx, r.World, conveyor.WithBatch(0))
		r.ErrorIs(err, runtime.ErrRange)
		_, err = conveyor.Open[int](ctx, r.World, conveyor.WithBound(-1))
		r.ErrorIs(err, runtime.ErrRange)
		_, err = conveyor.Open[int](ctx, r.World, conveyor.WithHeap(4096))
		r.ErrorContains(err, "give room for two")
		_, err = conveyor.Open[[]int](ctx, r.World)
		r.ErrorIs(err, rpipe.ErrType)
		v, err := conveyor.Open[[100]int64](ctx, r.World, conveyor.WithBatch(8)) // a record is more than a batch
		r.NoError(err)
		r.ErrorIs(v.Push(ctx, 1, [100]int64{}), runtime.ErrRange)
		r.NoError(v.Push(ctx, 0, [100]int64{9: 9}))
		got, _, err := v.Pull(ctx)
		r.NoError(err)
		r.EqualValues(9, got[9])
		r.NoError(v.Close(ctx))
		r.NoError(v.Close(ctx))
		r.ErrorIs(v.Push(ctx, 0, got), rpipe.ErrClosed)
	})
}
