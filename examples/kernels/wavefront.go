package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A wavefront is one rank's columns of a grid. In each iteration
//
//	a[i][j] = a[i-1][j] + a[i][j-1] - a[i-1][j-1]
//
// A rank computes a row when the rank on its left has put its last value of that row. Then it puts
// its own last value to the right. At the end of an iteration the last rank puts the negated last
// value of the grid into the first value. So no iteration overtakes the one before.
type wavefront struct {
	team  *runtime.Team
	order int
	cols  int       // of this rank
	grid  []float64 // order rows of 1 + cols: the column on the left comes first

	// edge holds the column on the left. Its slots say how much has arrived.
	edge *window.Window[float64]
	// edges is the number of rows that have arrived by the end of the last iteration.
	edges  uint64
	result float64 // of the grid at the last rank, after each iteration
}

// These are the slots of edge.
const (
	rowSlot    = 0 // rows of the column on the left
	cornerSlot = 1 // iterations whose result has arrived
)

// newWavefront divides the grid among the ranks by columns. Each rank has the last column of its
// left neighbor beside its own.
func newWavefront(ctx context.Context, world *runtime.Team, order int) (kernel, error) {
	if order < world.Size() {
		return nil, fmt.Errorf("order %d for %d ranks: give at least one column to each", order, world.Size())
	}
	k := &wavefront{team: world, order: order}
	first, end := part(order, world.Rank(), world.Size())
	k.cols = end - first
	k.grid = make([]float64, order*(1+k.cols))
	for j := range k.cols {
		k.grid[1+j] = float64(first + j)
	}
	if world.Rank() == 0 {
		for i := range order {
			k.grid[i*(1+k.cols)+1] = float64(i)
		}
	} else {
		k.grid[0] = float64(first - 1)
	}
	var err error
	k.edge, err = window.Allocate[float64](ctx, world, order, window.WithName("edge"))
	return k, err
}

// iterate sweeps row after row. Each row needs the value that the left neighbor has for it, and
// gives one to the right neighbor.
func (k *wavefront) iterate(ctx context.Context, number int) error {
	rank, size, width := k.team.Rank(), k.team.Size(), 1+k.cols
	for i := 1; i < k.order; i++ {
		row, above := k.grid[i*width:(i+1)*width], k.grid[(i-1)*width:i*width]
		if rank > 0 {
			arrived := window.Until{Slots: []int{rowSlot}, Condition: window.AtLeast, Value: k.edges + uint64(i)}
			if _, _, err := k.edge.WaitNotify(ctx, arrived); err != nil {
				return err
			}
			row[0] = k.edge.Local()[i]
		}
		sweep(row, above, rank == 0)
		if rank < size-1 {
			err := k.edge.PutNotify(ctx, rank+1, i, row[k.cols:], window.Signal{Slot: rowSlot, Value: k.edges + uint64(i)})
			if err != nil {
				return err
			}
		}
	}
	k.edges += uint64(k.order - 1)
	return k.corner(ctx, number)
}

// sweep computes a row. The first rank's first column stays. left and diagonal stay in registers, and
// the difference does not wait for left. So a value waits for one addition, and not for a store, a load
// and two of them.
func sweep(row, above []float64, first bool) {
	j := 1
	if first {
		j = 2
	}
	left, diagonal := row[j-1], above[j-1]
	row, above = row[j:], above[j:]
	for j, up := range above[:len(row)] {
		left += up - diagonal
		row[j], diagonal = left, up
	}
}

// corner puts the result, negated, into the first value of the grid.
func (k *wavefront) corner(ctx context.Context, number int) error {
	last, done := k.team.Size()-1, uint64(number+1)
	if k.team.Rank() == last {
		k.result = k.grid[len(k.grid)-1]
		err := k.edge.PutNotify(ctx, 0, 0, []float64{-k.result}, window.Signal{Slot: cornerSlot, Value: done})
		if err != nil {
			return err
		}
	}
	if k.team.Rank() > 0 {
		return nil
	}
	arrived := window.Until{Slots: []int{cornerSlot}, Condition: window.AtLeast, Value: done}
	if _, _, err := k.edge.WaitNotify(ctx, arrived); err != nil {
		return err
	}
	k.grid[1] = k.edge.Local()[0]
	return nil
}

// verify compares the last value with the one that the recurrence has in closed form.
func (k *wavefront) verify(_ context.Context, iterations int) error {
	if want := float64(iterations * 2 * (k.order - 1)); k.team.Rank() == k.team.Size()-1 && k.result != want {
		return fmt.Errorf("the last value is %g, want %g", k.result, want)
	}
	return nil
}

func (k *wavefront) rate() (float64, string) {
	return 2 * float64(k.order-1) * float64(k.order-1), "Mflop/s"
}

func (k *wavefront) free(ctx context.Context) error { return k.edge.Free(ctx) }
