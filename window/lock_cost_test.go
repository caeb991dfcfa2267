package window_test

import (
	"context"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
	"github.com/gopgas/gopgas/window"
)

func TestLockOfMappedMemoryAllocatesNothing(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		if r.Me == 0 {
			pair := func() {
				held, err := w.Lock(ctx, 1, window.Exclusive)
				r.NoError(err)
				r.NoError(held.Unlock(ctx))
			}
			pair()
			r.Zero(testing.AllocsPerRun(100, pair))
		}
		r.NoError(r.World.Barrier(ctx))
	})
}

// BenchmarkLockOfMappedMemory takes and releases a free lock.
func BenchmarkLockOfMappedMemory(b *testing.B) {
	for _, m := range []window.Mode{window.Exclusive, window.Shared} {
		b.Run(m.String(), func(b *testing.B) {
			err := testjob.Config{Provider: "loop", Ranks: 2}.Try(b, func(ctx context.Context, r *testjob.Rank) {
				w := allocate[int64](ctx, r, 1)
				if r.Me == 0 {
					b.ReportAllocs()
					for b.Loop() {
						held, err := w.Lock(ctx, 1, m)
						if err == nil {
							err = held.Unlock(ctx)
						}
						if err != nil {
							b.Error(err)
							break
						}
					}
				}
				r.NoError(r.World.Barrier(ctx))
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// TestLockPutUnlockOverTCPTakesTwoRoundTrips counts the requests of rank 0. The lock and the unlock wait
// for one atomic each. The put leaves with the unlock, behind which no READ is needed.
func TestLockPutUnlockOverTCPTakesTwoRoundTrips(t *testing.T) {
	var mu sync.Mutex
	var ranks []*trace.Provider
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		r.NoError(w.Fence(ctx))
		if r.Me == 0 {
			for _, m := range []window.Mode{window.Exclusive, window.Shared} {
				pair := func() {
					held, err := w.Lock(ctx, 1, m)
					r.NoError(err)
					r.NoError(w.PutValue(ctx, 1, 0, 7))
					r.NoError(held.Unlock(ctx))
				}
				pair() // connects
				for _, traced := range ranks {
					traced.Reset()
				}
				pair()
				posted := map[driver.Opcode]uint64{}
				for _, traced := range ranks {
					for op, n := range traced.Snapshot().Total.Posted {
						if n > 0 {
							posted[driver.Opcode(op)] += n
						}
					}
				}
				r.Equal(map[driver.Opcode]uint64{driver.OpAtomic: 2, driver.OpWrite: 1}, posted, m)
			}
			r.NoError(w.PutNotify(ctx, 1, 0, nil, window.Signal{Value: 1}))
		} else { // the home posts nothing
			_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1})
			r.NoError(err)
		}
		r.NoError(w.Fence(ctx))
	}, runtime.WithWrap(func(p driver.Provider) driver.Provider {
		mu.Lock()
		defer mu.Unlock()
		traced := trace.New(p)
		ranks = append(ranks, traced)
		return traced
	}))
}
