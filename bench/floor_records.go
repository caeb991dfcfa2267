//go:build linux

package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/window"
)

// conveyorRateFloor is a loop that stores records one behind the other into the
// target's memory, round and round, without checking that they were read. It
// announces a batch once; the target then reads each record. If no memory is
// mapped, it is a stream of records through a raw socket, as many at a time as a
// conveyor gathers.
func conveyorRateFloor[R record](ctx context.Context, h *harness, _ int) (task, error) {
	if !h.Mapped {
		return recordStream[R](ctx, h)
	}
	var r R
	slots := conveyed / len(r)
	records, err := window.Allocate[R](ctx, h.world, slots)
	if err != nil {
		return task{}, err
	}
	words, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	free := func(ctx context.Context) error { return errors.Join(words.Free(ctx), records.Free(ctx)) }
	if h.rank > target {
		return task{run: h.origin(nil), free: free}, nil
	}
	s := &stores[R]{ours: records.Local(), word: &words.Local()[0]}
	if s.theirs, err = records.Shared(ctx, target-h.rank); err != nil {
		return task{}, err
	}
	theirs, err := words.Shared(ctx, target-h.rank)
	if err != nil {
		return task{}, err
	}
	s.theirWord = &theirs[0]
	run := s.store
	if h.rank == target {
		run = s.look
	}
	return task{batch: manyBlocks, run: run, free: free}, nil
}

// stores are a rank's part of the loop.
type stores[R record] struct {
	ours, theirs    []R
	word, theirWord *uint64
	batches         uint64
	next            R
	sum             byte
}

// store stores n records at the peer and waits until the peer has looked at them.
func (s *stores[R]) store(ctx context.Context, n int) error {
	for i := range n {
		s.next[0] = byte(i)
		s.theirs[i%len(s.theirs)] = s.next
	}
	s.batches++
	atomic.StoreUint64(s.theirWord, s.batches)
	_, err := reach(ctx, s.word, s.batches)
	return err
}

// look waits for a batch of records, reads one byte of each, and tells the peer.
func (s *stores[R]) look(ctx context.Context, n int) error {
	s.batches++
	if _, err := reach(ctx, s.word, s.batches); err != nil {
		return err
	}
	for i := range min(n, len(s.ours)) {
		s.sum += s.ours[i][0]
	}
	atomic.StoreUint64(s.theirWord, s.batches)
	return nil
}

// recordStream sends records over a raw socket, in blocks as large as a conveyor's.
func recordStream[R record](ctx context.Context, h *harness) (task, error) {
	s, err := h.dial(ctx)
	if err != nil {
		return task{}, err
	}
	var r R
	b := &bundle{s: s, record: len(r), buf: make([]byte, conveyor.DefaultBatch), ack: make([]byte, 1)}
	run := h.origin(b.send)
	if h.rank == target {
		run = b.receive
	}
	return task{batch: manyBlocks, run: run, free: s.close}, nil
}

// A bundle is records that go through a socket together.
type bundle struct {
	s      *socket
	record int // bytes
	buf    []byte
	ack    []byte
	sum    byte
}

// send sends n records by full blocks, and waits for the peer's byte.
func (b *bundle) send(_ context.Context, n int) error {
	filled := 0
	for i := range n {
		b.buf[filled] = byte(i)
		if filled += b.record; filled < len(b.buf) && i < n-1 {
			continue
		}
		if err := b.s.repeat(1, b.buf[:filled]); err != nil {
			return err
		}
		filled = 0
	}
	return b.s.read(b.ack)
}

// receive reads n records and sends one byte back.
func (b *bundle) receive(_ context.Context, n int) error {
	for left := n * b.record; left > 0; {
		part := b.buf[:min(left, len(b.buf))]
		if err := b.s.read(part); err != nil {
			return err
		}
		for i := 0; i < len(part); i += b.record {
			b.sum += part[i]
		}
		left -= len(part)
	}
	return b.s.repeat(1, b.ack)
}
