package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// An array is spread over the ranks of a team in blocks. Indexes count the elements of all
// ranks.
//
//	index   0 1 2 3 | 4 5 6 7 | 8 9
//	rank    0       | 1       | 2
type array[T window.Number] struct {
	team  *runtime.Team
	w     *window.Window[T]
	n     int // elements of all ranks
	block int // elements of a rank; the last ones may have fewer
}

// newArray makes an array of n elements, which are 0. Kind: collective.
func newArray[T window.Number](ctx context.Context, team *runtime.Team, name string, n int) (*array[T], error) {
	a := &array[T]{team: team, n: n, block: max(1, (n+team.Size()-1)/team.Size())}
	first := min(n, team.Rank()*a.block)
	var err error
	a.w, err = window.AllocateV[T](ctx, team, min(a.block, n-first), window.WithName(name))
	return a, err
}

// place returns the rank that holds an element, and its index there.
func (a *array[T]) place(i int) (rank, index int) { return i / a.block, i % a.block }

// local yields the index and the place of each element that this rank holds. The loop may
// change them.
func (a *array[T]) local() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		mine, first := a.w.Local(), a.team.Rank()*a.block
		for i := range mine {
			if !yield(first+i, &mine[i]) {
				return
			}
		}
	}
}

// get returns an element. Kind: one-sided.
func (a *array[T]) get(ctx context.Context, i int) (T, error) {
	rank, index := a.place(i)
	return a.w.GetValue(ctx, rank, index)
}

// put stores an element. sync completes it. Kind: one-sided.
func (a *array[T]) put(ctx context.Context, i int, v T) error {
	rank, index := a.place(i)
	return a.w.PutValue(ctx, rank, index, v)
}

// add adds to an element. Any ranks may add to it at once. sync completes it. Kind:
// one-sided.
func (a *array[T]) add(ctx context.Context, i int, delta T) error {
	rank, index := a.place(i)
	return window.AtomicAdd(ctx, a.w, rank, index, delta)
}

// next adds 1 to an element, and returns its value before. Kind: one-sided.
func (a *array[T]) next(ctx context.Context, i int) (T, error) {
	rank, index := a.place(i)
	return window.FetchAdd(ctx, a.w, rank, index, 1)
}

// read gets the elements from index first on, of as many ranks as dst spans. Kind:
// one-sided.
func (a *array[T]) read(ctx context.Context, first int, dst []T) error {
	if first < 0 || first+len(dst) > a.n {
		return fmt.Errorf("read of elements [%d, %d): %w [0, %d)", first, first+len(dst), window.ErrRange, a.n)
	}
	for len(dst) > 0 {
		rank, index := a.place(first)
		n := min(len(dst), a.block-index)
		if err := a.w.Get(ctx, rank, index, dst[:n]); err != nil {
			return err
		}
		first, dst = first+n, dst[n:]
	}
	return nil
}

// sync completes the operations of all ranks. Kind: collective.
func (a *array[T]) sync(ctx context.Context) error { return a.w.Fence(ctx) }

// free frees the array. Kind: collective.
func (a *array[T]) free(ctx context.Context) error { return a.w.Free(ctx) }
