package main

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/runtime"
)

// A table maps keys to values that lie at servers.
type table struct {
	shelves []*farheap.Heap[byte]
	index   map[uint64]place
	forgot  int // keys forgotten for want of room
}

// A place is the place of a value.
type place struct {
	shelf int
	block farheap.Remote[byte]
}

func newTable() *table { return &table{index: map[uint64]place{}} }

// addShelf adds memory of a server.
func (t *table) addShelf(ctx context.Context, team *runtime.Team, server, size int) error {
	h, err := farheap.Open[byte](ctx, team, server, farheap.WithHeap(size), farheap.WithBlocks(size/64), farheap.WithPolicy(rpipe.BestFit{}))
	if err == nil {
		t.shelves = append(t.shelves, h)
	}
	return err
}

// set stores a value: in its old place if it is as long as the old value, else in
// a new one. It frees the old place only after it has stored the new value.
func (t *table) set(ctx context.Context, key uint64, value []byte) error {
	old, known := t.index[key]
	if known && old.block.Len() == len(value) {
		return t.shelves[old.shelf].Put(ctx, old.block, 0, value)
	}
	p, err := t.alloc(ctx, key, len(value))
	if err != nil {
		return err
	}
	if err := t.shelves[p.shelf].Put(ctx, p.block, 0, value); err != nil {
		return err
	}
	if old, known = t.index[key]; known { // and not forgotten meanwhile
		err = t.shelves[old.shelf].Free(old.block)
	}
	t.index[key] = p
	return err
}

// alloc finds room on any shelf, and makes some if there is none.
func (t *table) alloc(ctx context.Context, key uint64, n int) (place, error) {
	for {
		for i := range t.shelves {
			shelf := (int(key%uint64(len(t.shelves))) + i) % len(t.shelves)
			b, err := t.shelves[shelf].Alloc(ctx, n)
			if err == nil {
				return place{shelf, b}, nil
			}
			if !errors.Is(err, farheap.ErrFull) {
				return place{}, err
			}
		}
		if err := t.forget(); err != nil {
			return place{}, err
		}
	}
}

// forget deletes some key.
func (t *table) forget() error {
	for key := range t.index {
		t.forgot++
		return t.remove(key)
	}
	return errors.New("no room, and no key to forget")
}

// get returns a key's value, nil if there is none.
func (t *table) get(ctx context.Context, key uint64) ([]byte, error) {
	p, ok := t.index[key]
	if !ok {
		return nil, nil
	}
	value := make([]byte, p.block.Len())
	return value, t.shelves[p.shelf].Get(ctx, p.block, 0, value)
}

// remove deletes a key if it is there.
func (t *table) remove(key uint64) error {
	p, ok := t.index[key]
	if !ok {
		return nil
	}
	delete(t.index, key)
	return t.shelves[p.shelf].Free(p.block)
}

// close gives the shelves back.
func (t *table) close(ctx context.Context) error {
	var errs []error
	for _, h := range t.shelves {
		errs = append(errs, h.Close(ctx))
	}
	return errors.Join(errs...)
}
