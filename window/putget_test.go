package window_test

import (
	"context"
	"math"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

type point struct {
	X, Y  float64
	Tag   [3]byte
	Valid bool
}

type celsius float32

func TestEveryElementTypeArrivesUnchanged(t *testing.T) { testjob.All(t, 1, transferEveryType) }

// transferEveryType moves elements of every kind of type.
func transferEveryType(ctx context.Context, r *testjob.Rank) {
	transfer(ctx, r, func(i int) int8 { return int8(-i) })
	transfer(ctx, r, func(i int) uint16 { return uint16(i * 257) })
	transfer(ctx, r, func(i int) int32 { return math.MinInt32 + int32(i) })
	transfer(ctx, r, func(i int) uint64 { return math.MaxUint64 - uint64(i) })
	transfer(ctx, r, func(i int) int { return -i })
	transfer(ctx, r, func(i int) bool { return i%3 == 0 })
	transfer(ctx, r, func(i int) celsius { return celsius(i) / 3 })
	transfer(ctx, r, func(i int) float64 { return math.Pi * float64(i) })
	transfer(ctx, r, func(i int) complex128 { return complex(float64(i), -float64(i)) })
	transfer(ctx, r, func(i int) [3]byte { return [3]byte{byte(i), byte(i >> 8), 0xa5} })
	transfer(ctx, r, func(i int) [2][5]uint16 { return [2][5]uint16{{uint16(i)}, {1, 2, 3, 4, uint16(i)}} })
	transfer(ctx, r, func(i int) point { return point{float64(i), -1, [3]byte{1, 2, byte(i)}, i%2 == 0} })
}

// transfer moves elements in every way and checks both ends.
func transfer[T comparable](ctx context.Context, r *testjob.Rank, value func(i int) T) {
	const n = 12
	var zero T
	w := allocate[T](ctx, r, n)
	r.Equal(n, w.Len(r.Right()))
	mine := make([]T, n)
	for i := range mine {
		mine[i] = value(100*r.Me + i)
	}
	r.NoError(w.Put(ctx, r.Right(), 1, mine[1:6]))
	r.NoError(w.PutValue(ctx, r.Right(), 7, mine[7]))
	put, err := w.StartPut(ctx, r.Right(), 9, mine[9:11])
	r.NoError(err)
	r.NoError(put.Wait(ctx))
	r.NoError(w.Fence(ctx))
	for i, got := range w.Local() {
		want := value(100*r.Left() + i)
		if i == 0 || i == 6 || i == 8 || i == 11 {
			want = zero // between the puts
		}
		r.Equal(want, got, "element %d of %T", i, zero)
	}
	got := make([]T, n)
	r.NoError(w.Get(ctx, r.Right(), 1, got[1:6]))
	r.Equal(mine[1:6], got[1:6])
	one, err := w.GetValue(ctx, r.Right(), 7)
	r.NoError(err)
	r.Equal(mine[7], one)
	get, err := w.StartGet(ctx, r.Right(), 9, got[9:11])
	r.NoError(err)
	r.NoError(get.Wait(ctx))
	r.Equal(mine[9:11], got[9:11])
	r.NoError(w.Free(ctx))
}

func TestTransfersOfEverySizeArriveWhole(t *testing.T) {
	sizes := []int{0, 1, 7, 8, 63, 4095, 4096, 32<<10 - 1, 32<<10 + 1, 64 << 10, 256<<10 + 3, 1 << 20}
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[byte](ctx, r, 1<<20+2)
			for round, size := range sizes {
				src := make([]byte, size)
				for i := range src {
					src[i] = byte(i*7 + r.Me + round)
				}
				r.NoError(w.Put(ctx, r.Right(), 1, src))
				clear(src) // local completion: the source is the caller's again
				r.NoError(w.Fence(ctx))
				back := make([]byte, size)
				r.NoError(w.Get(ctx, r.Me, 1, back))
				for i := range back {
					if back[i] != byte(i*7+r.Left()+round) || w.Local()[1+i] != back[i] {
						r.Fail("wrong byte", "size %d, byte %d: %d", size, i, back[i])
					}
				}
				r.Zero(w.Local()[0])
				r.Zero(w.Local()[1<<20+1])
				r.NoError(w.Fence(ctx))
			}
		})
	})
}

func TestPutsToThisRankAreVisibleAfterFlush(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 4)
		r.NoError(w.PutValue(ctx, r.Me, 3, 7))
		r.NoError(w.Flush(ctx, r.Me))
		r.EqualValues(7, w.Local()[3])
	})
}

func TestWindowOfNoElementsHasLocksAndSlots(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[uint32](ctx, r, 0)
		r.Empty(w.Local())
		r.NoError(w.Put(ctx, r.Right(), 0, nil))
		r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Slot: 3, Value: 9}))
		_, v, err := w.WaitNotify(ctx, window.Until{Slots: []int{3}, Value: 9})
		r.NoError(err)
		r.EqualValues(9, v)
		held, err := w.Lock(ctx, r.Right(), window.Exclusive)
		r.NoError(err)
		r.NoError(held.Unlock(ctx))
	})
}

func TestSharedReturnsTheMemoryOfTheTarget(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int32](ctx, r, 5)
			theirs, err := w.Shared(ctx, r.Right())
			if !c.Mapped() {
				r.ErrorIs(err, window.ErrNotShared)
				return
			}
			r.NoError(err)
			r.Len(theirs, 5)
			theirs[4] = int32(r.Me + 1)
			r.NoError(w.Fence(ctx))
			r.EqualValues(r.Left()+1, w.Local()[4])
		})
	})
}

func TestWindowsOfOneTeamDoNotTouchEachOther(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		a := allocate[byte](ctx, r, 100, window.WithName("a"))
		b := allocate[byte](ctx, r, 100, window.WithName("b"))
		r.Equal("a", a.Name())
		full := make([]byte, 100)
		for i := range full {
			full[i] = 0xff
		}
		r.NoError(a.Put(ctx, r.Right(), 0, full))
		r.NoError(a.Fence(ctx))
		r.Equal(full, a.Local())
		r.Equal(make([]byte, 100), b.Local())
		r.NoError(b.Free(ctx))
		r.NoError(a.Fence(ctx))
		r.Equal(full, a.Local())
	})
}
