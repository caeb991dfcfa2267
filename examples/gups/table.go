package main

import (
	"context"
	"time"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A table is spread over the ranks in blocks of equal size.
type table struct {
	team  *runtime.Team
	w     *window.Window[uint64]
	words uint64 // of all ranks
	block uint64 // words of one
}

// newTable makes the table, a block of it at each rank, with the initial values.
func newTable(ctx context.Context, team *runtime.Team, log2 int) (*table, error) {
	t := &table{team: team, words: 1 << log2}
	size := uint64(team.Size())
	t.block = (t.words + size - 1) / size
	var err error
	if t.w, err = window.Allocate[uint64](ctx, team, int(t.block), window.WithName("table")); err != nil {
		return nil, err
	}
	for i := range t.w.Local() {
		t.w.Local()[i] = t.initial(i)
	}
	return t, t.w.Fence(ctx)
}

// initial returns the first content of this rank's word i: its number.
func (t *table) initial(i int) uint64 { return uint64(t.team.Rank())*t.block + uint64(i) }

// update makes the updates [from, to) of the sequence.
func (t *table) update(ctx context.Context, from, to uint64) error {
	ran := start(from)
	for range to - from {
		ran = next(ran)
		word := ran & (t.words - 1)
		if err := window.AtomicXor(ctx, t.w, int(word/t.block), int(word%t.block), ran); err != nil {
			return err
		}
	}
	return nil
}

// timed makes updates and returns the seconds until all ranks have them in place.
// Kind: collective.
func (t *table) timed(ctx context.Context, from, to uint64) (float64, error) {
	if err := t.team.Barrier(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := t.update(ctx, from, to); err != nil {
		return 0, err
	}
	if err := t.w.FlushAll(ctx); err != nil {
		return 0, err
	}
	seconds := time.Since(began).Seconds()
	return seconds, t.w.Fence(ctx)
}

// errors counts this rank's words that do not have their first content.
func (t *table) errors() (n uint64) {
	for i, v := range t.w.Local() {
		if v != t.initial(i) {
			n++
		}
	}
	return n
}
