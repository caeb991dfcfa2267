//go:build linux

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/gopgas/gopgas/window"
)

// manyBenchmarks returns those in which several ranks act at once, and those that update
// many elements.
func manyBenchmarks() []benchmark {
	return []benchmark{
		{name: "put_bibw", osu: "osu_put_bibw", about: "puts both ways at once, -W of them under way each", sized: true, unit: megabytes(), setup: putBothWays},
		{name: "put_mbw_mr", osu: "osu_mbw_mr", about: "puts of pairs of ranks at once", sized: true, unit: megabytes(), messages: true, setup: putByPairs},
		{name: "multi_latency", osu: "osu_multi_lat", about: "PutNotify and WaitNotify of pairs of ranks, ping-pong, one way", sized: true, unit: oneWay(), setup: pairsLatency},
		{name: "acc_latency", osu: "osu_acc_latency", about: "Accumulate of words, then flush", sized: true, unit: micros(), setup: accLatency},
		{name: "get_acc_latency", osu: "osu_get_acc_latency", about: "GetAccumulate of words", sized: true, unit: micros(), setup: getAccLatency},
		{name: "fetch_add_contended", about: "FetchAdd of all ranks on one word, each", unit: micros(), setup: fetchAddContended},
		{name: "cas_contended", about: "increment by CompareSwap of all ranks on one word, each", unit: micros(), setup: casContended},
		{name: "lock_contended", about: "exclusive lock, increment and unlock of all ranks, each", unit: micros(), setup: lockContended},
	}
}

// accLatency adds to the words of the target, then flushes.
func accLatency(ctx context.Context, h *harness, size int) (task, error) {
	return accumulate(ctx, h, size, func(ctx context.Context, w *window.Window[uint64], ones, _ []uint64) error {
		return errors.Join(window.Accumulate(ctx, w, target, 0, ones, window.Sum[uint64]()), w.Flush(ctx, target))
	})
}

// getAccLatency adds to the words of the target and fetches them.
func getAccLatency(ctx context.Context, h *harness, size int) (task, error) {
	return accumulate(ctx, h, size, func(ctx context.Context, w *window.Window[uint64], ones, old []uint64) error {
		return window.GetAccumulate(ctx, w, target, 0, ones, old, window.Sum[uint64]())
	})
}

// accumulate prepares a task in which rank 0 applies add to size bytes of the target.
func accumulate(ctx context.Context, h *harness, size int, add func(ctx context.Context, w *window.Window[uint64], ones, old []uint64) error) (task, error) {
	words := max(size/elementSize, 1)
	w, err := window.Allocate[uint64](ctx, h.world, words)
	if err != nil {
		return task{}, err
	}
	ones, old := slices.Repeat([]uint64{1}, words), make([]uint64, words)
	return task{free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
		for range n {
			if err := add(ctx, w, ones, old); err != nil {
				return err
			}
		}
		return nil
	})}, nil
}

// contended has all ranks update the word of rank 0.
func contended(ctx context.Context, h *harness, update func(ctx context.Context, w *window.Window[uint64]) error) (task, error) {
	w, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	return task{together: true, free: w.Free, run: func(ctx context.Context, n int) error {
		for range n {
			if err := update(ctx, w); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// fetchAddContended has all ranks add to one word of rank 0.
func fetchAddContended(ctx context.Context, h *harness, _ int) (task, error) {
	return contended(ctx, h, func(ctx context.Context, w *window.Window[uint64]) error {
		_, err := window.FetchAdd(ctx, w, 0, 0, 1)
		return err
	})
}

// casContended repeats a swap until no other rank came between.
func casContended(ctx context.Context, h *harness, _ int) (task, error) {
	known := uint64(0)
	return contended(ctx, h, func(ctx context.Context, w *window.Window[uint64]) error {
		for {
			seen, err := window.CompareSwap(ctx, w, 0, 0, known, known+1)
			if err != nil {
				return err
			}
			if seen == known {
				known++
				return nil
			}
			known = seen
		}
	})
}

// lockContended has all ranks take one lock of rank 0 and increment the word that it guards.
func lockContended(ctx context.Context, h *harness, _ int) (task, error) {
	return contended(ctx, h, func(ctx context.Context, w *window.Window[uint64]) error {
		held, err := w.Lock(ctx, 0, window.Exclusive)
		if err != nil {
			return err
		}
		v, err := w.GetValue(ctx, 0, 0)
		if err != nil {
			return err
		}
		if err := w.PutValue(ctx, 0, 0, v+1); err != nil {
			return err
		}
		return held.Unlock(ctx)
	})
}
