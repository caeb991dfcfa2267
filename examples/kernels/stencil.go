package main

import (
	"context"
	"fmt"
	"math"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// radius is the radius of the star.
const radius = 2

// A stencil is one rank's tile of a square grid. In each iteration
//
//	out[i][j] += the weighted sum of in over a star around i, j
//	in[i][j]  += 1
//
// The ranks lie in two dimensions. Each puts its outermost rows and columns into its
// neighbors' edges, each with a signal, and waits for the signals of its own edges.
type stencil struct {
	team       *runtime.Team
	order      int
	top, left  int // of the tile in the grid
	rows, cols int // of the tile
	neighbors  [4]int
	width      int       // of a row of in, with both edges
	in         []float64 // the tile within edges of radius
	out        []float64
	edges      *window.Window[float64] // four edges for even iterations, then four for odd ones
	buffer     []float64               // an edge that this rank sends
}

// These are the sides of a tile. A side is also the slot of the signal of its edge.
const (
	above = iota
	below
	before
	after
)

// newStencil divides the grid among the ranks as tiles, each with a margin for cells of the
// neighbors. The window has two places for each side, used in turn.
func newStencil(ctx context.Context, world *runtime.Team, order int) (kernel, error) {
	down, across := shape(world.Size())
	if order < radius*max(down, across) || order <= 2*radius {
		return nil, fmt.Errorf("order %d for %d x %d ranks: give at least %d rows and columns to each", order, down, across, radius)
	}
	k := &stencil{team: world, order: order}
	i, j := world.Rank()/across, world.Rank()%across
	var bottom, right int
	k.top, bottom = part(order, i, down)
	k.left, right = part(order, j, across)
	k.rows, k.cols = bottom-k.top, right-k.left
	rank := func(i, j int) int {
		if i < 0 || i >= down || j < 0 || j >= across {
			return window.Null
		}
		return i*across + j
	}
	k.neighbors = [4]int{above: rank(i-1, j), below: rank(i+1, j), before: rank(i, j-1), after: rank(i, j+1)}
	k.width = k.cols + 2*radius
	k.in, k.out = make([]float64, (k.rows+2*radius)*k.width), make([]float64, k.rows*k.cols)
	for i := range k.rows {
		for j := range k.cols {
			k.in[k.at(i, j)] = float64(k.top + i + k.left + j)
		}
	}
	most := radius * (order/min(down, across) + 1)
	k.buffer = make([]float64, most)
	var err error
	k.edges, err = window.Allocate[float64](ctx, world, 2*4*most, window.WithName("edges"))
	return k, err
}

// shape returns the most even division of ranks into rows and columns.
func shape(ranks int) (down, across int) {
	down = int(math.Sqrt(float64(ranks)))
	for ranks%down > 0 {
		down--
	}
	return down, ranks / down
}

// at returns the place of a value of the tile, or of its edges, in k.in.
func (k *stencil) at(i, j int) int { return (i+radius)*k.width + j + radius }

// A face is a part of a rank's tile, or of its edges: rows x cols values from a place on.
type face struct{ i, j, rows, cols int }

// faces returns the faces that this rank sends to each side, and those that it gets.
func (k *stencil) faces(side int) (sent, got face) {
	switch side {
	case above:
		return face{0, 0, radius, k.cols}, face{-radius, 0, radius, k.cols}
	case below:
		return face{k.rows - radius, 0, radius, k.cols}, face{k.rows, 0, radius, k.cols}
	case before:
		return face{0, 0, k.rows, radius}, face{0, -radius, k.rows, radius}
	default:
		return face{0, k.cols - radius, k.rows, radius}, face{0, k.cols, k.rows, radius}
	}
}

// iterate puts this rank's edges to the neighbors, waits for theirs, and computes. A neighbor may
// be one iteration ahead: its edges go to the other place.
func (k *stencil) iterate(ctx context.Context, number int) error {
	now := uint64(number + 1)
	for side, neighbor := range k.neighbors {
		sent, _ := k.faces(side)
		n := 0
		for i := range sent.rows {
			n += copy(k.buffer[n:], k.in[k.at(sent.i+i, sent.j):][:sent.cols])
		}
		other := side ^ 1 // this rank lies at the neighbor's other side
		if err := k.edges.PutNotify(ctx, neighbor, k.edge(other, number), k.buffer[:n], window.Signal{Slot: other, Value: now}); err != nil {
			return err
		}
	}
	for side, neighbor := range k.neighbors {
		if neighbor == window.Null {
			continue
		}
		if _, _, err := k.edges.WaitNotify(ctx, window.Until{Slots: []int{side}, Condition: window.AtLeast, Value: now}); err != nil {
			return err
		}
		_, got := k.faces(side)
		from := k.edges.Local()[k.edge(side, number):]
		for i := range got.rows {
			from = from[copy(k.in[k.at(got.i+i, got.j):][:got.cols], from):]
		}
	}
	k.compute()
	for i := range k.rows {
		row := k.in[k.at(i, 0):][:k.cols]
		for j := range row {
			row[j]++
		}
	}
	return nil
}

// edge returns the place of an edge of an iteration.
func (k *stencil) edge(side, iteration int) int { return (iteration%2*4 + side) * len(k.buffer) }

// compute adds the stars of this rank's values that are not at the grid's own edges. The slices of
// a row have one length, so that the loop checks no index. The values of its own row move from
// variable to variable, and are loaded once.
func (k *stencil) compute() {
	w1, w2 := 1.0/(2*radius), 1.0/(4*radius)
	first, n := max(0, radius-k.left), 0
	if last := min(k.cols, k.order-radius-k.left); last > first {
		n = last - first
	}
	for i := max(0, radius-k.top); i < min(k.rows, k.order-radius-k.top); i++ {
		out := k.out[i*k.cols+first:][:n]
		row := func(down, right int) []float64 { return k.in[k.at(i+down, first+right):][:len(out)] }
		up1, up2, down1, down2 := row(-1, 0), row(-2, 0), row(1, 0), row(2, 0)
		right2 := row(0, 2)
		at := k.at(i, first)
		left2, left1, here, right1 := k.in[at-2], k.in[at-1], k.in[at], k.in[at+1]
		for j, next := range right2 {
			out[j] += w1*(right1-left1+down1[j]-up1[j]) + w2*(next-left2+down2[j]-up2[j])
			left2, left1, here, right1 = left1, here, right1, next
		}
	}
}

// verify compares the mean of all stars with that of the formula: each iteration adds 1 in
// each direction.
func (k *stencil) verify(ctx context.Context, iterations int) error {
	sum := []float64{0}
	for _, v := range k.out {
		sum[0] += math.Abs(v)
	}
	if err := collectives.AllReduce(ctx, k.team, collectives.Sum[float64](), sum, sum); err != nil {
		return err
	}
	inner := float64(k.order - 2*radius)
	norm := sum[0] / (inner * inner)
	if want := 2 * float64(iterations); math.Abs(norm-want) > 1e-8*want {
		return fmt.Errorf("the norm is %g, want %g", norm, want)
	}
	return nil
}

// rate returns the operations of one iteration, and their unit.
func (k *stencil) rate() (float64, string) {
	const size = 4*radius + 1
	inner := float64(k.order - 2*radius)
	return (2*size + 1) * inner * inner, "Mflop/s"
}

func (k *stencil) free(ctx context.Context) error { return k.edges.Free(ctx) }
