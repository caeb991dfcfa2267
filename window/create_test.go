package window_test

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func TestAllocateWithUnlikeArgumentsReturnsErrMismatchAtAllRanks(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		before := used(r.World)
		odd := r.N / 2 // the rank with another argument
		n, slots := 10, 4
		if r.Me == odd {
			n = 11
		}
		r.ErrorIs(attempt[int32](ctx, r, n), runtime.ErrMismatch)
		if r.Me == odd {
			slots = 5
		}
		r.ErrorIs(attempt[int32](ctx, r, 10, window.WithSlots(slots)), runtime.ErrMismatch)
		var err error
		if r.Me == odd {
			err = attempt[uint32](ctx, r, 10)
		} else {
			err = attempt[int32](ctx, r, 10)
		}
		r.ErrorIs(err, runtime.ErrMismatch)
		r.ErrorContains(err, "uint32")
		if r.Me == odd {
			err = attempt[struct{ A, B int32 }](ctx, r, 10)
		} else {
			err = attempt[[2]int32](ctx, r, 10)
		}
		r.ErrorIs(err, runtime.ErrMismatch)
		r.Equal(before, used(r.World), "what failed holds no memory")
		r.NoError(attempt[int32](ctx, r, 10), "the team goes on")
	})
}

func TestAllocateFailsAtAllRanksIfOneRankFails(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		before := used(r.World)
		var err error
		if r.Me == r.N-1 {
			err = attempt[int32](ctx, r, 10, window.WithSlots(-7))
			r.ErrorIs(err, window.ErrRange)
		} else {
			err = attempt[int32](ctx, r, 10)
		}
		r.ErrorContains(err, "-7 notification slots", "everyone learns why")
		r.Equal(before, used(r.World))
		r.NoError(attempt[int32](ctx, r, 10))
	})
}

func TestAllocateFailsAtAllRanksIfOneHeapIsExhausted(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		arena := team.Of(r.World).Arena()
		if r.Me == 0 {
			block, err := arena.Alloc(3 << 20)
			r.NoError(err)
			defer func() { r.NoError(arena.Free(block)) }()
		}
		before := used(r.World)
		err := attempt[byte](ctx, r, 2<<20)
		r.ErrorIs(err, runtime.ErrExhausted)
		r.ErrorContains(err, "raise GRUN_HEAP", "everyone learns what to do")
		r.Equal(before, used(r.World))
		r.NoError(attempt[byte](ctx, r, 1<<10), "the team goes on")
	}, runtime.WithHeap(4<<20))
}

func TestAllocateWithoutTeamReturnsAnError(t *testing.T) {
	w, err := window.Allocate[int](t.Context(), nil, 1)
	if w != nil {
		t.Error("a window of no team")
	}
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		r.ErrorIs(err, window.ErrTeam)
		none, err := r.World.Split(ctx, -1, 0)
		r.NoError(err)
		_, err = window.Allocate[int](ctx, none, 1)
		r.ErrorIs(err, window.ErrTeam)
	})
}

func TestWindowOfASplitNumbersRanksAsTheSplitDoes(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		team, err := r.World.Split(ctx, r.Me%2, -r.Me) // the last one first
		r.NoError(err)
		w, err := window.Allocate[int](ctx, team, 1)
		r.NoError(err)
		next := (team.Rank() + 1) % team.Size()
		r.NoError(w.PutValue(ctx, next, 0, r.Me+1))
		r.NoError(w.Fence(ctx))
		before, err := team.WorldRank((team.Rank() + team.Size() - 1) % team.Size())
		r.NoError(err)
		r.Equal(before+1, w.Local()[0])
		r.ErrorIs(w.PutValue(ctx, team.Size(), 0, 1), window.ErrRange)
		r.NoError(w.Free(ctx))
	})
}

func TestFreeGivesMemoryBack(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		cycles := 100
		if c.Mapped() && !testwatch.Race { // quick enough for more than the heap
			cycles = 1000
		}
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			before := used(r.World)
			for i := range cycles {
				w := allocate[uint64](ctx, r, 40_000) // 1000 times it is more than the heap
				r.Greater(used(r.World), before)
				r.Zero(w.Local()[i], "memory that was used before reads zero")
				r.NoError(w.PutValue(ctx, r.Right(), i+1, 7))
				r.NoError(w.Free(ctx))
			}
			r.Equal(before, used(r.World))
		})
	})
}

func TestOperationsAfterFreeFail(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, elems)
		held, err := w.Lock(ctx, r.Right(), window.Shared)
		r.NoError(err)
		r.NoError(held.Unlock(ctx))
		kept := w.Local()
		r.NoError(w.Free(ctx))
		for _, list := range [][]access{ranged, single, whole} {
			for _, a := range list {
				r.ErrorIs(a.call(ctx, w, r.Right(), 0, 1), window.ErrFreed, a.op)
			}
		}
		r.ErrorIs(held.Unlock(ctx), window.ErrFreed)
		r.ErrorIs(w.FlushAll(ctx), window.ErrFreed)
		r.ErrorIs(w.Fence(ctx), window.ErrFreed)
		r.ErrorIs(w.Free(ctx), window.ErrFreed)
		_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1})
		r.ErrorIs(err, window.ErrFreed)
		_, err = w.ResetNotify(0, 1)
		r.ErrorIs(err, window.ErrFreed)
		for range kept {
			kept[elems-1]++ // garbage, but no fault
		}
		r.NoError(attempt[int64](ctx, r, 3))
	})
}

// TestFreeReturnsWhilePutsAreUnderWay: later puts fail at this rank. None of them
// reaches memory that the target has withdrawn, which would end the connection.
func TestFreeReturnsWhilePutsAreUnderWay(t *testing.T) {
	for _, c := range testjob.Transports(3) {
		if c.Mapped() {
			continue // the program must order its stores itself
		}
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				for range 10 {
					w := allocate[int64](ctx, r, 1024) // of which each goroutine writes 40
					var putting errgroup.Group
					for g := range 8 {
						putting.Go(func() (err error) {
							for i := 0; err == nil; i++ {
								err = w.PutValue(ctx, (r.Me+g)%r.N, (r.Me*8+g)*40+i%40, 1)
							}
							return err
						})
					}
					r.NoError(w.Free(ctx))
					r.ErrorIs(putting.Wait(), window.ErrFreed)
				}
				w := allocate[int64](ctx, r, 1)
				r.NoError(w.PutValue(ctx, r.Right(), 0, 1))
				r.NoError(w.Fence(ctx))
				r.EqualValues(1, w.Local()[0])
			})
		})
	}
}

func TestFreeWakesWaitsForNotifications(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		woken := make(chan error)
		go func() {
			_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1})
			woken <- err
		}()
		r.NoError(w.Free(ctx))
		r.ErrorIs(<-woken, window.ErrFreed)
	})
}

func TestFlushesAndWaitsAfterCloseFail(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, elems)
		r.NoError(w.PutValue(ctx, r.Right(), 0, 1))
		r.NoError(w.Fence(ctx))
		kept := w.Local()
		r.NoError(r.Job.Close(ctx))
		for _, call := range []func() error{
			func() error { return w.Flush(ctx, r.Right()) },
			func() error { return w.FlushAll(ctx) },
			func() error { return w.Fence(ctx) },
			func() error { return attempt[int](ctx, r, 1) },
			func() error {
				_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1})
				return err
			},
			func() error { return w.Free(ctx) },
		} {
			r.ErrorIs(call(), runtime.ErrClosed)
		}
		kept[0]++ // garbage, but no fault
	})
}
