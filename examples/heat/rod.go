package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// Sides of a rod: the place of a ghost cell, and the slot of its signal.
const (
	left  = 0
	right = 1
)

// A rod is one rank's part of the ring.
type rod struct {
	team   *runtime.Team
	ghosts *window.Window[float64] // two for even steps, two for odd ones
	cells  []float64
	next   []float64
}

// newRod makes this rank's part of the rod. The window has two ghost cells a side, used in turn.
func newRod(ctx context.Context, team *runtime.Team) (*rod, error) {
	ghosts, err := window.Allocate[float64](ctx, team, 4)
	if err != nil {
		return nil, err
	}
	r := &rod{team: team, ghosts: ghosts, cells: make([]float64, cells), next: make([]float64, cells)}
	if team.Rank() == 0 {
		r.cells[0] = 1000
	}
	return r, nil
}

// exchange fills the ghost cells of this step at both neighbors and waits for
// its own. A neighbor can be one step ahead and no more, since it needs this
// rank's edges: so two sets of ghost cells suffice.
func (r *rod) exchange(ctx context.Context, step int) error {
	n, set, now := r.team.Size(), step%2*2, uint64(step+1)
	before, after := (r.team.Rank()+n-1)%n, (r.team.Rank()+1)%n
	err := r.ghosts.PutNotify(ctx, before, set+right, r.cells[:1], window.Signal{Slot: right, Value: now})
	if err != nil {
		return err
	}
	err = r.ghosts.PutNotify(ctx, after, set+left, r.cells[cells-1:], window.Signal{Slot: left, Value: now})
	if err != nil {
		return err
	}
	both := window.Until{Slots: []int{left, right}, Condition: window.AtLeast, Value: now, All: true}
	_, _, err = r.ghosts.WaitNotify(ctx, both)
	return err
}

// spread computes one step.
func (r *rod) spread(step int) {
	ghosts := r.ghosts.Local()[step%2*2:]
	spread(r.next, r.cells, ghosts[left], ghosts[right])
	r.cells, r.next = r.next, r.cells
}

// spread stores in next the new value of each cell, with before and after beside
// the outermost ones.
func spread(next, cells []float64, before, after float64) {
	for i, c := range cells {
		l, r := before, after
		if i > 0 {
			l = cells[i-1]
		}
		if i < len(cells)-1 {
			r = cells[i+1]
		}
		next[i] = c + (l-2*c+r)/4
	}
}

// verify computes the whole ring alone and compares this rank's part, to the
// last bit.
func (r *rod) verify() error {
	all := make([]float64, cells*r.team.Size())
	next := make([]float64, len(all))
	all[0] = 1000
	for range steps {
		spread(next, all, all[len(all)-1], all[0])
		all, next = next, all
	}
	first := r.team.Rank() * cells
	for i, c := range r.cells {
		if want := all[first+i]; c != want {
			return fmt.Errorf("cell %d is %g, want %g", first+i, c, want)
		}
	}
	return nil
}
