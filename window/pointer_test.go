package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// node is an element of a list whose nodes lie at all ranks.
type node struct {
	Value int64
	Next  window.Pointer[node]
}

func TestPointersLeadThroughAListOverAllRanks(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const each = 5
		nodes := allocate[node](ctx, r, each)
		heads := allocate[window.Pointer[node]](ctx, r, 1)
		for i := range each { // node i of this rank leads to node i of the next rank, or to node i+1 of rank 0
			n := node{Value: int64(i*r.N + r.Me)}
			target, index := r.Me+1, i
			if target == r.N {
				target, index = 0, i+1
			}
			if index < each {
				var err error
				n.Next, err = nodes.Pointer(target, index)
				r.NoError(err)
			}
			nodes.Local()[i] = n
		}
		if r.Me == 0 {
			head, err := nodes.Pointer(0, 0)
			r.NoError(err)
			for to := range r.N {
				r.NoError(heads.PutValue(ctx, to, 0, head))
			}
		}
		r.NoError(heads.Fence(ctx))
		count := int64(0)
		for p := heads.Local()[0]; !p.IsNil(); count++ {
			w, target, index, err := window.Find(r.World, p)
			r.NoError(err)
			r.Same(nodes, w)
			n, err := w.GetValue(ctx, target, index)
			r.NoError(err)
			r.Equal(count, n.Value)
			p = n.Next
		}
		r.EqualValues(each*r.N, count)
		r.NoError(r.World.Barrier(ctx), "all have walked")
		r.NoError(heads.Free(ctx))
		r.NoError(nodes.Free(ctx))
	})
}

func TestPointersOutsideTheWindowReturnErrPointer(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.AllocateV[int32](ctx, r.World, 3+r.Me)
		r.NoError(err)
		other := allocate[int32](ctx, r, 100)
		_, err = w.Pointer(0, 3)
		r.ErrorIs(err, window.ErrRange)
		_, err = w.Pointer(r.N, 0)
		r.ErrorIs(err, window.ErrRange)
		p, err := w.Pointer(1, 3)
		r.NoError(err)
		again, err := w.Pointer(1, 0)
		r.NoError(err)
		r.Equal(p, again.Add(3))
		for _, bad := range []window.Pointer[int32]{{}, p.Add(1), p.Add(-4), window.Pointer[int32]{}.Add(2)} {
			_, _, err = w.Locate(bad)
			r.ErrorIs(err, window.ErrPointer)
			_, _, _, err = window.Find(r.World, bad)
			r.ErrorIs(err, window.ErrPointer)
		}
		_, _, err = other.Locate(p)
		r.ErrorIs(err, window.ErrPointer)
		_, _, _, err = window.Find(nil, p)
		r.ErrorIs(err, window.ErrTeam)
		pairs, err := r.World.Split(ctx, r.Me%2, 0)
		r.NoError(err)
		_, _, _, err = window.Find(pairs, p)
		r.ErrorIs(err, window.ErrPointer)
		r.NoError(pairs.Free(ctx))

		r.NoError(w.Free(ctx))
		later := allocate[int32](ctx, r, 100)
		_, _, _, err = window.Find(r.World, p)
		r.ErrorIs(err, window.ErrPointer, "a stale pointer leads into no later window")
		_, _, err = w.Locate(p)
		r.ErrorIs(err, window.ErrFreed)
		r.NoError(later.Free(ctx))
		r.NoError(other.Free(ctx))
	})
}

func TestFindRefusesAPointerToAnotherType(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		ints := allocate[int64](ctx, r, 2)
		kept := allocate[window.Pointer[int64]](ctx, r, 1)
		p, err := ints.Pointer(r.Me, 1)
		r.NoError(err)
		kept.Local()[0] = p
		bits := allocate[window.Pointer[uint64]](ctx, r, 1)
		// A program that stores a pointer in memory of another type gets an error at its use.
		shared, err := kept.Pointer(r.Me, 0)
		r.NoError(err)
		_, target, index, err := window.Find(r.World, shared)
		r.NoError(err)
		r.Equal([2]int{r.Me, 0}, [2]int{target, index})
		bits.Local()[0] = window.Recast[uint64](p)
		_, _, _, err = window.Find(r.World, bits.Local()[0])
		r.ErrorIs(err, window.ErrType)
		for _, free := range []func(context.Context) error{ints.Free, kept.Free, bits.Free} {
			r.NoError(free(ctx))
		}
	})
}
