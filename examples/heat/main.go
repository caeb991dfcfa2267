// Heat spreads heat along a ring of cells that is divided among the ranks.
//
//	grun -n 4 ./examples/heat
//
// In each step a rank puts its outermost cells into its neighbors' ghost cells,
// each with a signal. It waits for the signals of both, and computes. A step has
// no barrier: a rank waits for its neighbors only.
package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

const (
	cells = 1000 // at each rank
	steps = 500
)

func main() { runtime.Main(heat) }

// heat steps the rod: ghost cells to the neighbors, then this rank's own cells. It compares the
// result with a sequential run.
func heat(ctx context.Context, job *runtime.Job) error {
	r, err := newRod(ctx, job.World())
	if err != nil {
		return err
	}
	for step := range steps {
		if err := r.exchange(ctx, step); err != nil {
			return err
		}
		r.spread(step)
	}
	if err := r.verify(); err != nil {
		return err
	}
	return r.report(ctx)
}

// report adds up the heat of all ranks at rank 0: the sum never changes.
func (r *rod) report(ctx context.Context) error {
	total, err := window.Allocate[float64](ctx, r.team, 1)
	if err != nil {
		return err
	}
	var mine float64
	for _, c := range r.cells {
		mine += c
	}
	if _, err := window.FetchAdd(ctx, total, 0, 0, mine); err != nil {
		return err
	}
	if err := total.Fence(ctx); err != nil {
		return err
	}
	if r.team.Rank() == 0 {
		fmt.Printf("%d cells at %d ranks, %d steps: heat %.3f\n", cells*r.team.Size(), r.team.Size(), steps, total.Local()[0])
	}
	return nil
}
