package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A worker uses a table at random and knows its content.
type worker struct {
	t        *table
	rnd      *rand.Rand
	versions map[uint64]uint64 // of each key that it has set and not removed
	reads    uint64            // that found a value
}

// value returns the n-th value of a key: 16 to 1,000 bytes.
func value(key, version uint64) []byte {
	rnd := rand.New(rand.NewPCG(key, version))
	v := make([]byte, 16+rnd.IntN(985))
	for i := 0; i+8 <= len(v); i += 8 {
		binary.LittleEndian.PutUint64(v[i:], rnd.Uint64())
	}
	return v
}

// step makes one operation: half of them read, a third write, the rest remove.
func (w *worker) step(ctx context.Context, key uint64) error {
	switch k := w.rnd.IntN(6); {
	case k < 3:
		return w.check(ctx, key)
	case k < 5:
		version := w.rnd.Uint64()
		w.versions[key] = version
		return w.t.set(ctx, key, value(key, version))
	default:
		delete(w.versions, key)
		return w.t.remove(key)
	}
}

// check compares a key's value with the last one stored. The table may have
// forgotten it.
func (w *worker) check(ctx context.Context, key uint64) error {
	got, err := w.t.get(ctx, key)
	if got == nil || err != nil {
		return err
	}
	w.reads++
	version, ok := w.versions[key]
	if !ok {
		return fmt.Errorf("key %d was removed and is there", key)
	}
	if !bytes.Equal(got, value(key, version)) {
		return fmt.Errorf("key %d does not hold the value stored last", key)
	}
	return nil
}

// work uses the table, and at the end reads all of it.
func (o options) work(ctx context.Context, t *table, seed uint64) (*worker, error) {
	w := &worker{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), versions: map[uint64]uint64{}}
	for range o.ops {
		if err := w.step(ctx, w.rnd.Uint64N(uint64(o.keys))); err != nil {
			return w, err
		}
	}
	return w, w.checkAll(ctx)
}

// checkAll compares every value. Keys that are missing must be those that the
// table has forgotten.
func (w *worker) checkAll(ctx context.Context) error {
	missing := 0
	for key := range w.versions {
		if _, ok := w.t.index[key]; !ok {
			missing++
		}
	}
	if missing > w.t.forgot {
		return fmt.Errorf("%d keys are missing, %d were forgotten", missing, w.t.forgot)
	}
	for key := range w.t.index {
		if err := w.check(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// workAndReport works, adds up the numbers of all clients at the first one, and
// gives the shelves back.
func (o options) workAndReport(ctx context.Context, clients *runtime.Team, t *table) error {
	w, err := o.work(ctx, t, uint64(clients.Rank()))
	if err != nil {
		return err
	}
	stats := make([]rpipe.HeapStats, len(t.shelves))
	for i, h := range t.shelves {
		stats[i] = h.Stats()
	}
	if err := t.close(ctx); err != nil {
		return err
	}
	return o.report(ctx, clients, w, stats)
}

// Numbers that the clients add up.
const (
	values = iota
	payload
	used
	size
	reads
	forgot
	numbers
)

// report adds the clients' counts by atomics at client 0, which prints them.
func (o options) report(ctx context.Context, clients *runtime.Team, w *worker, stats []rpipe.HeapStats) error {
	sums, err := window.Allocate[uint64](ctx, clients, numbers, window.WithName("sums"))
	if err != nil {
		return err
	}
	mine := [numbers]uint64{values: uint64(len(w.t.index)), reads: w.reads, forgot: uint64(w.t.forgot)}
	for _, s := range stats {
		mine[payload] += uint64(s.Payload)
		mine[used] += uint64(s.Used)
		mine[size] += uint64(s.Size)
	}
	for i, n := range mine {
		if err := window.AtomicAdd(ctx, sums, 0, i, n); err != nil {
			return err
		}
	}
	if err := sums.Fence(ctx); err != nil {
		return err
	}
	if clients.Rank() == 0 {
		s := sums.Local()
		fmt.Fprintf(o.out, "%d clients, %d servers each: %d operations, %d values read and right\n", clients.Size(), len(stats), clients.Size()*o.ops, s[reads])
		fmt.Fprintf(o.out, "%d values of %d bytes in %d of %d, %d forgotten for want of room\n", s[values], s[payload], s[used], s[size], s[forgot])
	}
	return sums.Free(ctx)
}
