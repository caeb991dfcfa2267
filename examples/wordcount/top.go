package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/gopgas/gopgas/window"
)

// Top returns the k most frequent words at rank 0, and none at the rest, after a
// Fence. Equally frequent words are in alphabetical order. Each rank sorts its
// own part and gives rank 0 the numbers of its k best slots; no further slot can
// be among the best of all. Kind: collective.
func (t *Table) Top(ctx context.Context, k int) ([]Entry, error) {
	room := min(k, int(t.mask)+1) // for one rank's candidates
	w, err := window.Allocate[uint64](ctx, t.team, t.team.Size()*room, window.WithName("candidates"))
	if err != nil {
		return nil, err
	}
	signal := window.Signal{Slot: 0, Value: 1, Add: true}
	if err := w.PutNotify(ctx, 0, t.team.Rank()*room, t.best(room), signal); err != nil {
		return nil, err
	}
	var found []Entry
	if t.team.Rank() == 0 {
		if found, err = t.gather(ctx, w, room); err != nil {
			return nil, err
		}
		slices.SortFunc(found, byCount)
	}
	return found[:min(k, len(found))], w.Free(ctx)
}

// best returns the numbers of this rank's k best slots, counted from 1.
func (t *Table) best(k int) []uint64 {
	type candidate struct {
		Entry
		slot int
	}
	var all []candidate
	for slot, e := range t.local().entries() {
		all = append(all, candidate{e, slot})
	}
	slices.SortFunc(all, func(a, b candidate) int { return byCount(a.Entry, b.Entry) })
	numbers := make([]uint64, min(k, len(all)))
	for i := range numbers {
		numbers[i] = uint64(all[i].slot) + 1
	}
	return numbers
}

// gather waits for all ranks' candidates and reads their words.
func (t *Table) gather(ctx context.Context, w *window.Window[uint64], room int) ([]Entry, error) {
	all := window.Until{Slots: []int{0}, Condition: window.AtLeast, Value: uint64(t.team.Size())}
	if _, _, err := w.WaitNotify(ctx, all); err != nil {
		return nil, err
	}
	var found []Entry
	for i, number := range w.Local() {
		if number == 0 {
			continue // that rank has no more words
		}
		e, err := t.at(ctx, i/room, int(number-1))
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, nil
}

// byCount orders frequent words first.
func byCount(a, b Entry) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
}
