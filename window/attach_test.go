package window_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func TestAttachedMemoryIsReachedByItsPointer(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		before := used(r.World)
		w := allocate[int64](ctx, r, 0, window.WithAttachments(3))
		heads := allocate[window.Pointer[int64]](ctx, r, 1)
		p, mine, err := w.Attach(ctx, 10+r.Me)
		r.NoError(err)
		r.Equal(make([]int64, 10+r.Me), mine)
		r.NoError(heads.PutValue(ctx, r.Right(), 0, p.Add(4)))
		r.NoError(heads.Fence(ctx))
		left := r.Left()
		a, err := w.Open(ctx, heads.Local()[0])
		r.NoError(err)
		r.Equal([2]int{left, 4}, [2]int{a.Target, a.Index})
		r.Equal(10+left, a.Len(left))
		if r.N > 1 {
			r.Zero(a.Len(r.Me))
			r.ErrorIs(a.PutValue(ctx, r.Me, 0, 1), window.ErrRange)
		}
		r.NoError(a.Put(ctx, left, 0, []int64{int64(r.Me), 5, 6}))
		_, err = window.FetchAdd(ctx, a.Window, left, 4, -7)
		r.NoError(err)
		q, err := a.StartPut(ctx, left, 9+left, []int64{77})
		r.NoError(err)
		r.NoError(q.Wait(ctx))
		r.ErrorIs(a.PutValue(ctx, left, 10+left, 1), window.ErrRange)
		again, err := a.Pointer(left, 4)
		r.NoError(err)
		r.Equal(heads.Local()[0], again)
		r.NoError(a.Flush(ctx, left))
		r.NoError(a.Close(ctx))
		r.ErrorIs(a.PutValue(ctx, left, 0, 1), window.ErrFreed)
		r.ErrorIs(a.Close(ctx), window.ErrFreed)
		r.NoError(r.World.Barrier(ctx))
		r.Equal([]int64{int64(r.Right()), 5, 6, 0, -7}, mine[:5])
		r.EqualValues(77, mine[9+r.Me])
		r.NoError(w.Detach(ctx, p))
		r.ErrorIs(w.Detach(ctx, p), window.ErrPointer)
		r.NoError(r.World.Barrier(ctx))
		_, err = w.Open(ctx, heads.Local()[0])
		r.ErrorIs(err, window.ErrPointer)
		r.ErrorContains(err, "detached")
		r.NoError(heads.Free(ctx))
		r.NoError(w.Free(ctx))
		r.Equal(before, used(r.World))
	})
}

func TestStalePointersLeadToNoLaterAttachment(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, 1, window.WithAttachments(1))
		heads := allocate[window.Pointer[int32]](ctx, r, 2)
		for i := range 2 { // both use the one entry
			p, _, err := w.Attach(ctx, 100)
			r.NoError(err)
			_, _, err = w.Attach(ctx, 1)
			r.ErrorIs(err, window.ErrExhausted)
			r.ErrorContains(err, "WithAttachments")
			r.NoError(heads.PutValue(ctx, r.Right(), i, p))
			if i == 0 {
				r.NoError(w.Detach(ctx, p))
			}
		}
		r.NoError(heads.Fence(ctx))
		_, err := w.Open(ctx, heads.Local()[0])
		r.ErrorIs(err, window.ErrPointer)
		a, err := w.Open(ctx, heads.Local()[1])
		r.NoError(err)
		_, _, err = a.Locate(heads.Local()[0])
		r.ErrorIs(err, window.ErrPointer)
		_, _, err = w.Locate(heads.Local()[1])
		r.ErrorIs(err, window.ErrPointer, "attached memory is no part of the window")
		_, _, _, err = window.Find(r.World, heads.Local()[1])
		r.ErrorIs(err, window.ErrPointer)
		r.ErrorContains(err, "Window.Open")
		own, err := w.Pointer(r.Me, 0)
		r.NoError(err)
		for _, bad := range []window.Pointer[int32]{{}, own} {
			_, err = w.Open(ctx, bad)
			r.ErrorIs(err, window.ErrPointer)
			r.ErrorIs(w.Detach(ctx, bad), window.ErrPointer)
		}
		r.ErrorIs(w.Detach(ctx, heads.Local()[1]), window.ErrPointer, "another rank attached it")
		other := allocate[int32](ctx, r, 1, window.WithAttachments(1))
		_, err = other.Open(ctx, heads.Local()[1])
		r.ErrorIs(err, window.ErrPointer)
		_, err = a.Lock(ctx, a.Target, window.Shared)
		r.ErrorIs(err, window.ErrPart)
		_, _, err = a.WaitNotify(ctx, window.Until{Slots: []int{0}})
		r.ErrorIs(err, window.ErrRange)
		r.ErrorIs(a.PutNotify(ctx, a.Target, 0, nil, window.Signal{}), window.ErrRange)
		r.ErrorIs(a.Free(ctx), window.ErrPart)
		r.NoError(w.Free(ctx))
		r.ErrorIs(a.PutValue(ctx, a.Target, 0, 1), window.ErrFreed, "the window ended before the lease")
		r.ErrorIs(a.Close(ctx), window.ErrFreed)
		_, _, err = w.Attach(ctx, 1)
		r.ErrorIs(err, window.ErrFreed)
	})
}

// A rank that has opened memory may use it after its owner has detached it.
func TestDetachedMemoryStaysUntilItsLeasesEnd(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, 0, window.WithAttachments(2))
		heads := allocate[window.Pointer[byte]](ctx, r, 1)
		full := used(r.World)
		p, mine, err := w.Attach(ctx, 100_000)
		r.NoError(err)
		r.NoError(heads.PutValue(ctx, r.Right(), 0, p))
		r.NoError(heads.Fence(ctx))
		a, err := w.Open(ctx, heads.Local()[0])
		r.NoError(err)
		twice, err := w.Open(ctx, heads.Local()[0])
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(w.Detach(ctx, p))
		r.Greater(used(r.World), full+100_000)
		later, fresh, err := w.Attach(ctx, 100_000)
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(a.Put(ctx, a.Target, 0, []byte{1, 2, 3}))
		r.NoError(a.Close(ctx))
		r.NoError(twice.Put(ctx, a.Target, 99_999, []byte{4}))
		r.NoError(twice.Close(ctx))
		r.NoError(r.World.Barrier(ctx))
		r.Equal([]byte{1, 2, 3}, mine[:3])
		r.Equal(byte(4), mine[99_999])
		r.Equal(make([]byte, 100_000), fresh)
		r.NoError(w.Detach(ctx, later))
		r.Equal(full, used(r.World), "Detach gave both back")
		r.NoError(heads.Free(ctx))
		r.NoError(w.Free(ctx))
	})
}

// churn attaches and detaches memory at all ranks while all open each other's pointers. A rank
// writes a mark only under a lease. Fresh memory that is not zero shows a late write.
func churn(ctx context.Context, r *testjob.Rank) {
	const rounds, n = 40, 700
	w := allocate[int64](ctx, r, 0, window.WithAttachments(4))
	heads := allocate[window.Pointer[int64]](ctx, r, 1)
	full := used(r.World)
	random := rand.New(rand.NewPCG(7, uint64(r.Me)))
	for round := range rounds {
		p, mine, err := w.Attach(ctx, n)
		r.NoError(err)
		for i, v := range mine {
			r.Zero(v, "round %d, element %d", round, i)
		}
		publish(ctx, r, heads, p)
		for range 3 {
			target := random.IntN(r.N)
			r.NoError(visit(ctx, w, look(ctx, r, heads, target), r.Me))
		}
		r.NoError(w.Detach(ctx, p))
	}
	r.NoError(r.World.Barrier(ctx))
	p, _, err := w.Attach(ctx, 1)
	r.NoError(err)
	r.NoError(w.Detach(ctx, p))
	r.Equal(full, used(r.World))
	r.NoError(heads.Free(ctx))
	r.NoError(w.Free(ctx))
}

// publish stores a pointer word by word under the lock of this rank.
func publish(ctx context.Context, r *testjob.Rank, heads *window.Window[window.Pointer[int64]], p window.Pointer[int64]) {
	held, err := heads.Lock(ctx, r.Me, window.Exclusive)
	r.NoError(err)
	r.NoError(heads.PutValue(ctx, r.Me, 0, p))
	r.NoError(held.Unlock(ctx))
}

// look reads a rank's pointer under its lock.
func look(ctx context.Context, r *testjob.Rank, heads *window.Window[window.Pointer[int64]], target int) window.Pointer[int64] {
	held, err := heads.Lock(ctx, target, window.Shared)
	r.NoError(err)
	p, err := heads.GetValue(ctx, target, 0)
	r.NoError(err)
	r.NoError(held.Unlock(ctx))
	return p
}

// visit writes to this rank's piece of an attachment, unless that is detached.
func visit(ctx context.Context, w *window.Window[int64], p window.Pointer[int64], me int) error {
	const marked = 1 << 40
	a, err := w.Open(ctx, p)
	if errors.Is(err, window.ErrPointer) {
		return nil // detached meanwhile, or not yet attached
	}
	if err != nil {
		return err
	}
	if n := a.Len(a.Target); n != 700 {
		return fmt.Errorf("%d elements", n)
	}
	values := slices.Repeat([]int64{marked}, 80)
	if err := a.Put(ctx, a.Target, 80*me, values); err != nil {
		return err
	}
	if _, err := window.AtomicLoad(ctx, a.Window, a.Target, 80*me+5); err != nil {
		return err
	}
	return a.Close(ctx)
}

func TestAttachAndDetachAmidOpens(t *testing.T) {
	testjob.All(t, 1, churn)
}

func TestAttachAndDetachAmidOpensBetweenProcesses(t *testing.T) {
	if testwatch.Race {
		t.Skip("processes share no memory that the detector sees")
	}
	for _, j := range testjob.Processes(4) {
		t.Run(j.String(), func(t *testing.T) { j.Run(t, "attach") })
	}
}

func TestAttachReturnsErrExhaustedAndLeavesTheWindow(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 0, window.WithAttachments(2))
		_, _, err := w.Attach(ctx, 4<<20)
		r.ErrorIs(err, window.ErrExhausted)
		_, _, err = w.Attach(ctx, -1)
		r.ErrorIs(err, window.ErrRange)
		p, mine, err := w.Attach(ctx, 0)
		r.NoError(err)
		r.Empty(mine)
		a, err := w.Open(ctx, p)
		r.NoError(err)
		r.Zero(a.Len(r.Me))
		r.NoError(w.Free(ctx))
		_, err = window.Allocate[byte](ctx, r.World, 1, window.WithAttachments(-1))
		r.ErrorIs(err, window.ErrRange)
	}, runtime.WithHeap(4<<20))
}
