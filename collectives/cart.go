package collectives

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/runtime"
)

// A Cart arranges a team as a grid of so many members in each dimension. The last
// dimension runs fastest. Its graph joins neighbors in each dimension. A member has its
// edges dimension by dimension: to the lower neighbor, then to the higher, where they
// exist.
//
//	dims 2, 3     0 - 1 - 2      edges of 4: 1 (dimension 0), 3, 5 (dimension 1)
//	              |   |   |
//	              3 - 4 - 5
type Cart struct {
	*Graph
	dims     []int
	periodic []bool
}

// NewCart makes a grid of a team. dims multiply to the team's size. In a periodic
// dimension the last member and the first are neighbors. All members give the same.
// Kind: collective.
func NewCart(ctx context.Context, t *runtime.Team, dims []int, periodic []bool) (*Cart, error) {
	c := &Cart{dims: slices.Clone(dims), periodic: slices.Clone(periodic)}
	err := c.check(t)
	if err == nil {
		in, out, slots := c.edges(t.Rank())
		c.Graph, err = newGraph(ctx, t, in, out, slots)
	}
	if err != nil {
		return nil, &OpError{Op: "NewCart", Team: t.Name(), Rank: t.Rank(), Err: err}
	}
	return c, nil
}

// check compares the dimensions with the size of the team.
func (c *Cart) check(t *runtime.Team) error {
	if t == nil {
		return runtime.ErrTeam
	}
	size := 1
	for _, d := range c.dims {
		if d < 1 || d > t.Size() {
			return fmt.Errorf("dimension of %d members: %w [1, %d]", d, ErrRange, t.Size())
		}
		size *= d
	}
	if size != t.Size() {
		return fmt.Errorf("dimensions %v make %d places for %d members: %w; give dimensions whose product is the team's size",
			c.dims, size, t.Size(), ErrLength)
	}
	if len(c.periodic) != len(c.dims) {
		return fmt.Errorf("%d dimensions, and %d that are said to be periodic or not: %w; say it of each", len(c.dims), len(c.periodic), ErrLength)
	}
	return nil
}

// edges returns a member's edges. It lists the edges in from the higher neighbor first,
// with the slots of their blocks. So the edges match where both neighbors are the same
// member: the block that it sends to its lower neighbor comes from the higher one here.
func (c *Cart) edges(rank int) (in, out, slots []int) {
	for dim := range c.dims {
		lower, hasLower := c.Neighbor(rank, dim, -1)
		higher, hasHigher := c.Neighbor(rank, dim, +1)
		low := len(out)
		if hasLower {
			out = append(out, lower)
		}
		if hasHigher {
			in, slots = append(in, higher), append(slots, len(out))
			out = append(out, higher)
		}
		if hasLower {
			in, slots = append(in, lower), append(slots, low)
		}
	}
	return in, out, slots
}

// Coords returns where a rank is. Kind: local.
func (c *Cart) Coords(rank int) []int {
	coords := make([]int, len(c.dims))
	for dim := len(c.dims) - 1; dim >= 0; dim-- {
		coords[dim] = rank % c.dims[dim]
		rank /= c.dims[dim]
	}
	return coords
}

// RankAt returns the rank at coords. Coordinates wrap around in periodic dimensions;
// outside the border of any other dimension, ok is false. Kind: local.
func (c *Cart) RankAt(coords ...int) (rank int, ok bool) {
	if len(coords) != len(c.dims) {
		return -1, false
	}
	for dim, at := range coords {
		size := c.dims[dim]
		if c.periodic[dim] {
			at = (at%size + size) % size
		}
		if at < 0 || at >= size {
			return -1, false
		}
		rank = rank*size + at
	}
	return rank, true
}

// Neighbor returns the rank that is by steps away from rank in a dimension; ok is
// false beyond a border. Kind: local.
func (c *Cart) Neighbor(rank, dim, by int) (neighbor int, ok bool) {
	if dim < 0 || dim >= len(c.dims) {
		return -1, false
	}
	coords := c.Coords(rank)
	coords[dim] += by
	return c.RankAt(coords...)
}
