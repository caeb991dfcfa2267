package main

import (
	"context"
	"slices"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A direction holds the values of the search direction that this rank needs:
//
//	values   this rank's part | values of rank 0 | values of rank 1 | ...
//
// Only the values that this rank's rows need are there. Each other rank puts its own, with a signal
// in the slot of its rank. A rank puts values of the next iteration behind a sum of all ranks. So
// no rank uses the values of this iteration any more.
type direction struct {
	team      *runtime.Team
	values    *window.Window[float64]
	from      []int  // ranks that put values here
	sends     []send // values that this rank puts
	iteration uint64 // number of exchanges
}

// A send is the values that one other rank needs.
type send struct {
	to      int
	at      int   // place there
	indexes []int // in this rank's part
	buffer  []float64
}

// newDirection finds the values that each rank needs of each other, and has m's columns name
// places in values. Kind: collective.
func newDirection(ctx context.Context, world *runtime.Team, m *matrix) (*direction, error) {
	d := &direction{team: world}
	size, own := world.Size(), m.end-m.first
	needed := neededOf(m, size)
	counts, places, place := make([]int, size), make([]int64, size), own
	var asks []int64
	for rank, columns := range needed {
		counts[rank], places[rank] = len(columns), int64(place)
		if len(columns) > 0 {
			d.from = append(d.from, rank)
		}
		for _, c := range columns {
			asks = append(asks, int64(c))
		}
		place += len(columns)
	}
	m.rename(needed, places)
	if err := d.tell(ctx, m.first, counts, places, asks); err != nil {
		return nil, err
	}
	var err error
	d.values, err = window.AllocateV[float64](ctx, world, place, window.WithName("direction"), window.WithSlots(size))
	return d, err
}

// neededOf returns the columns of m's entries that each other rank holds, sorted.
func neededOf(m *matrix, size int) [][]int {
	columns := slices.Clone(m.columns)
	slices.Sort(columns)
	needed := make([][]int, size)
	for _, c := range slices.Compact(columns) {
		if c < m.first || c >= m.end {
			rank := owner(m.n, c, size)
			needed[rank] = append(needed[rank], c)
		}
	}
	return needed
}

// rename replaces columns by places in values.
func (m *matrix) rename(needed [][]int, places []int64) {
	size := len(needed)
	for i, c := range m.columns {
		if c >= m.first && c < m.end {
			m.columns[i] = c - m.first
			continue
		}
		rank := owner(m.n, c, size)
		at, _ := slices.BinarySearch(needed[rank], c)
		m.columns[i] = int(places[rank]) + at
	}
}

// tell sends each rank the columns that this rank needs of it, and their place here. Kind:
// collective.
func (d *direction) tell(ctx context.Context, first int, counts []int, places, asks []int64) error {
	size := d.team.Size()
	mine, theirs := make([]int64, 2*size), make([]int64, 2*size)
	for rank := range size {
		mine[2*rank], mine[2*rank+1] = int64(counts[rank]), places[rank]
	}
	if err := collectives.AllToAll(ctx, d.team, mine, theirs); err != nil {
		return err
	}
	gets, all := make([]int, size), 0
	for rank := range size {
		gets[rank] = int(theirs[2*rank])
		all += gets[rank]
	}
	columns := make([]int64, all)
	err := collectives.AllToAllV(ctx, d.team, asks, collectives.Blocks{Counts: counts}, columns, collectives.Blocks{Counts: gets})
	if err != nil {
		return err
	}
	for rank, n := range gets {
		if n == 0 {
			continue
		}
		s := send{to: rank, at: int(theirs[2*rank+1]), buffer: make([]float64, n)}
		for _, c := range columns[:n] {
			s.indexes = append(s.indexes, int(c)-first)
		}
		columns = columns[n:]
		d.sends = append(d.sends, s)
	}
	return nil
}

// exchange puts this rank's part to the ranks that need it, and waits for the values that
// this rank needs. It returns all of them.
func (d *direction) exchange(ctx context.Context, p []float64) ([]float64, error) {
	d.iteration++
	values := d.values.Local()
	copy(values, p)
	for _, s := range d.sends {
		for i, index := range s.indexes {
			s.buffer[i] = p[index]
		}
		if err := d.values.PutNotify(ctx, s.to, s.at, s.buffer, window.Signal{Slot: d.team.Rank(), Value: d.iteration}); err != nil {
			return nil, err
		}
	}
	if len(d.from) == 0 {
		return values, nil
	}
	arrived := window.Until{Slots: d.from, Condition: window.AtLeast, Value: d.iteration, All: true}
	_, _, err := d.values.WaitNotify(ctx, arrived)
	return values, err
}

// free frees the values. Kind: collective.
func (d *direction) free(ctx context.Context) error { return d.values.Free(ctx) }
