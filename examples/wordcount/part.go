package main

import (
	"context"
	"encoding/binary"
	"iter"
)

// An Entry is a word of a table and its count.
type Entry struct {
	Word  string
	Count uint64
}

// A part is one rank's part of a table.
type part struct {
	slots []uint64
	keys  []byte
}

// local returns this rank's own part. Read it after a Fence. Kind: local.
func (t *Table) local() part { return part{t.slots.Local(), t.keys.Local()} }

// fetch copies a rank's part, after a Fence. Kind: one-sided.
func (t *Table) fetch(ctx context.Context, owner int) (part, error) {
	p := part{make([]uint64, t.slots.Len(owner)), make([]byte, t.keys.Len(owner))}
	if err := t.slots.Get(ctx, owner, 0, p.slots); err != nil {
		return p, err
	}
	return p, t.keys.Get(ctx, owner, 0, p.keys)
}

// entries yields the taken slots, by number.
func (p part) entries() iter.Seq2[int, Entry] {
	return func(yield func(int, Entry) bool) {
		for i := 0; i < len(p.slots); i += 2 {
			if p.slots[i] != 0 && !yield(i/2, Entry{p.word(p.slots[i]), p.slots[i+1]}) {
				return
			}
		}
	}
}

// word returns the word at the place that state names.
func (p part) word(state uint64) string {
	record := p.keys[place(state):]
	n := binary.LittleEndian.Uint64(record)
	return string(record[headSize : headSize+n])
}

// at reads one taken slot, after a Fence. Kind: one-sided.
func (t *Table) at(ctx context.Context, owner, slot int) (e Entry, err error) {
	var words [2]uint64
	if err = t.slots.Get(ctx, owner, 2*slot, words[:]); err != nil {
		return e, err
	}
	var head [headSize]byte
	if err = t.keys.Get(ctx, owner, place(words[0]), head[:]); err != nil {
		return e, err
	}
	word := make([]byte, binary.LittleEndian.Uint64(head[:]))
	err = t.keys.Get(ctx, owner, place(words[0])+headSize, word)
	return Entry{string(word), words[1]}, err
}
