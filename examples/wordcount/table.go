package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A Table counts words in the memory of a team: a hash table with open
// addressing, a part of it at every rank. Any rank adds to any part, without the
// program of its owner.
//
//	slots: two words each                 keys: records of bytes
//	+-------+-------+-------+-------+--   +--------+------+--------+------+--
//	| state | count | state | count |     | length | word | length | word |
//	+-------+-------+-------+-------+--   +--------+------+--------+------+--
//	    '------------------------------------------------>'
//	state: 63   48 47      40 39                           0
//	       tag     class      place + 1, or 0 in a free slot
//
// The tag is a part of the word's hash, and the class its length, as far as it
// fits. They tell most words apart without reading the key.
//
// A rank writes the record first, into a range of the owner's keys that it alone
// fills. Then it takes the slot by one compare-and-swap, which publishes the
// record as well. So no rank ever waits for another rank.
type Table struct {
	team     *runtime.Team
	plan     *Plan
	slots    *window.Window[uint64]
	keys     *window.Window[byte]
	mask     uint64    // slots of a part - 1
	reserves []reserve // by owner: the place of this rank's next record
	record   []byte    // record of the word being added
	other    []byte    // record to compare with it
}

const (
	placeBits = 40
	classBits = 8
	tagShift  = placeBits + classBits
	longest   = 1<<classBits - 1 // the class of this length and all longer ones
	headSize  = 8                // the length in front of a word
	maxPlace  = 1<<placeBits - 2
)

// NewTable makes a table that is large enough for all ranks' plans. Kind:
// collective.
func NewTable(ctx context.Context, team *runtime.Team, plan *Plan) (*Table, error) {
	e, err := plan.agree(ctx, team)
	if err != nil {
		return nil, err
	}
	if e.bytes > maxPlace {
		return nil, fmt.Errorf("%d bytes of words for one rank; a table has room for %d: use more ranks", e.bytes, maxPlace)
	}
	// A power of two, and at most half full: short ways to a free slot.
	n := 1 << bits.Len64(2*e.words)
	t := &Table{team: team, plan: plan, mask: uint64(n - 1), reserves: e.reserves}
	if t.slots, err = window.Allocate[uint64](ctx, team, 2*n, window.WithName("slots")); err != nil {
		return nil, err
	}
	t.keys, err = window.Allocate[byte](ctx, team, int(e.bytes), window.WithName("keys"))
	return t, err
}

// Add counts a word n more times. It is complete after a Fence. One goroutine of
// a rank adds at a time. Kind: one-sided; it waits for the owner's memory once
// for a new word, twice for a known one.
func (t *Table) Add(ctx context.Context, word string, n uint64) error {
	hash := t.plan.hash(word)
	owner := t.plan.owner(hash)
	publish, err := t.store(ctx, owner, word, hash)
	if err != nil {
		return err
	}
	first := hash / uint64(len(t.plan.needs))
	for i := range t.mask + 1 {
		slot := int((first + i) & t.mask)
		known, err := t.claim(ctx, owner, slot, publish, hash)
		if err != nil {
			return err
		}
		if known {
			return window.AtomicAdd(ctx, t.slots, owner, 2*slot+1, n)
		}
	}
	return &FullError{Owner: owner}
}

// store writes the word's record at its owner, where no rank reads it yet. It
// returns the state that publishes it, or 0 if this rank has added all the words
// that it planned there.
func (t *Table) store(ctx context.Context, owner int, word string, hash uint64) (publish uint64, err error) {
	t.record = binary.LittleEndian.AppendUint64(t.record[:0], uint64(len(word)))
	t.record = append(t.record, word...)
	r := t.reserves[owner]
	if r.next+len(t.record) > r.end {
		return 0, nil
	}
	if err := t.keys.Put(ctx, owner, r.next, t.record); err != nil {
		return 0, err
	}
	// The swap that publishes the record must not overtake it.
	return t.sort(hash)<<placeBits | uint64(r.next+1), t.keys.Order(owner)
}

// sort returns the tag and class of the word being added.
func (t *Table) sort(hash uint64) uint64 {
	return hash>>tagShift<<classBits | uint64(min(len(t.record)-headSize, longest))
}

// claim takes the slot if it is free. It reports whether the slot is now, or was
// before, that of the word being added.
func (t *Table) claim(ctx context.Context, owner, slot int, publish, hash uint64) (bool, error) {
	seen, err := window.CompareSwap(ctx, t.slots, owner, 2*slot, 0, publish)
	switch {
	case err != nil:
		return false, err
	case seen != 0:
		return t.same(ctx, owner, seen, hash)
	case publish == 0:
		return false, &FullError{Owner: owner}
	}
	t.reserves[owner].next += len(t.record)
	return true, nil
}

// same reports whether the word in a slot is the one being added.
func (t *Table) same(ctx context.Context, owner int, seen, hash uint64) (bool, error) {
	if seen>>placeBits != t.sort(hash) {
		return false, nil
	}
	if seen>>placeBits&longest < longest {
		return t.equal(ctx, owner, place(seen), t.record) // has the same length
	}
	same, err := t.equal(ctx, owner, place(seen), t.record[:headSize])
	if same && err == nil {
		same, err = t.equal(ctx, owner, place(seen), t.record)
	}
	return same, err
}

// equal compares bytes of the owner's keys.
func (t *Table) equal(ctx context.Context, owner, at int, with []byte) (bool, error) {
	t.other = append(t.other[:0], with...)
	err := t.keys.Get(ctx, owner, at, t.other)
	return bytes.Equal(t.other, with), err
}

// place returns the place of the record of a taken slot.
func place(state uint64) int { return int(state&(1<<placeBits-1)) - 1 }

// Fence completes the additions of all ranks. Kind: collective.
func (t *Table) Fence(ctx context.Context) error { return t.slots.Fence(ctx) }

// Free ends the table at all ranks. Kind: collective.
func (t *Table) Free(ctx context.Context) error {
	if err := t.keys.Free(ctx); err != nil {
		return err
	}
	return t.slots.Free(ctx)
}

// A FullError reports a word that no plan announced.
type FullError struct{ Owner int }

func (e *FullError) Error() string {
	return fmt.Sprintf("rank %d's part of the table is full: plan for every word before the table is made", e.Owner)
}
