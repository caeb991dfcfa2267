package collectives

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// Collect is [AllGatherV] for members that know the length of their own block only: shmem_collect
// (OpenSHMEM 1.5, section 9.9.6). The blocks lie one after the other at the beginning of out, in the
// order of ranks; counts has their lengths. A call gathers all lengths first, and the blocks then. If
// out of a member is too short, no block moves, and every member gets an [ErrLength] that names that
// member. The slices in and out must be apart. Kind: collective; returns when out is complete, and in
// may be changed.
func Collect[T any](ctx context.Context, t *runtime.Team, in, out []T, opts ...Option) (counts []int, err error) {
	c := AllGatherVCall(in, out, Blocks{}, opts...)
	if overlap(c.send, c.recv) || same(c.send, c.recv) {
		return nil, collectError(t, ErrOverlap)
	}
	if t == nil {
		return nil, run(ctx, t, &c)
	}
	mine, all := [][2]int{{len(in), len(out)}}, make([][2]int, t.Size())
	if err := AllGather(ctx, t, mine, all); err != nil {
		return nil, err
	}
	var blocks Blocks
	for _, lengths := range all {
		blocks.Counts = append(blocks.Counts, lengths[0])
	}
	total := blocks.total()
	for rank, lengths := range all {
		if lengths[1] < total {
			return nil, collectError(t, lengthError(fmt.Sprintf("output of rank %d", rank), lengths[1], total))
		}
	}
	return blocks.Counts, AllGatherV(ctx, t, in, out[:total], blocks, opts...)
}

// collectError wraps an error of Collect, which no member has begun.
func collectError(t *runtime.Team, err error) error {
	inner := team.Of(t)
	return &OpError{Op: "Collect", Team: inner.Name, Rank: inner.Rank, Err: err}
}

// AllToAllStrided is [AllToAll] of elements that do not follow one another: shmem_alltoalls
// (OpenSHMEM 1.5, section 9.9.8). Each member sends n elements to each. Element i for member m is
// in[(m*n+i)*inStride]; that of member m arrives in out[(m*n+i)*outStride]. Other elements of out keep their
// values. Strides are at least 1 and may differ between members. The call copies the elements
// to memory of its own, so in and out may overlap. Kind: collective; returns when out is complete, and
// in may be changed.
func AllToAllStrided[T any](ctx context.Context, t *runtime.Team, n int, in []T, inStride int, out []T, outStride int, opts ...Option) error {
	c := AllToAllCall(in, out, opts...)
	if t == nil {
		return run(ctx, t, &c)
	}
	size := t.Size()
	for _, b := range []struct {
		name        string
		len, stride int
	}{{"input", len(in), inStride}, {"output", len(out), outStride}} {
		if err := checkStride(b.name, b.len, b.stride, n, size); err != nil {
			inner := team.Of(t)
			return &OpError{Op: fmt.Sprintf("AllToAllStrided of %d %v", n, c.typ), Team: inner.Name, Rank: inner.Rank, Err: err}
		}
	}
	packed, arrived := make([]T, n*size), make([]T, n*size)
	for i := range packed {
		packed[i] = in[i*inStride]
	}
	if err := AllToAll(ctx, t, packed, arrived, opts...); err != nil {
		return err
	}
	for i := range arrived {
		out[i*outStride] = arrived[i]
	}
	return nil
}

// checkStride checks that a slice has n elements for each of size members, stride apart.
func checkStride(what string, length, stride, n, size int) error {
	switch {
	case n < 0:
		return fmt.Errorf("%d elements for each member: %w", n, ErrLength)
	case stride < 1:
		return fmt.Errorf("stride %d of the %s, less than 1: %w", stride, what, ErrLength)
	case n > 0 && (n > length/size || (length-1)/stride < n*size-1):
		return fmt.Errorf("%s has %d elements, too few for %d of stride %d: %w", what, length, n*size, stride, ErrLength)
	}
	return nil
}
