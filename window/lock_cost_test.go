package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
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
			r.Zero(r.Allocs(100, pair))
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
	countPostsOverTCP(t, 1, func(ctx context.Context, r *testjob.Rank, w *window.Window[int64], posted func(func() error) requests) {
		for _, m := range []window.Mode{window.Exclusive, window.Shared} {
			pair := func() error {
				held, err := w.Lock(ctx, 1, m)
				r.NoError(err)
				r.NoError(w.PutValue(ctx, 1, 0, 7))
				return held.Unlock(ctx)
			}
			r.Equal(requests{driver.OpAtomic: 2, driver.OpWrite: 1}, posted(pair), m)
		}
	})
}
