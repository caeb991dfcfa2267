//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// randomWords is the number of words among which operations of one word choose, more than
// a core's own caches hold. It is a power of two, and the same in bench/peers.
const randomWords = 1 << 20

// A scatter yields indices of words, by Marsaglia's xorshift: the same ones in bench/peers.
type scatter uint64

// next returns the index of a random word (xorshift64).
func (s *scatter) next() int {
	x := uint64(*s)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*s = scatter(x)
	return int(x % randomWords)
}

// randomBenchmarks returns those of single words all over a window. The batch ends with a
// flush.
func randomBenchmarks() []benchmark {
	put := func(ctx context.Context, w *window.Window[uint64], i int) error {
		return w.PutValue(ctx, target, i, uint64(i))
	}
	xor := func(ctx context.Context, w *window.Window[uint64], i int) error {
		return window.AtomicXor(ctx, w, target, i, uint64(i))
	}
	return []benchmark{
		{name: "put_random", about: "PutValue of 8 bytes to random words", unit: micros(), setup: atRandom(put)},
		{name: "xor_random", about: "AtomicXor of random words", unit: micros(), setup: atRandom(xor)},
	}
}

// atRandom returns the setup of a task in which rank 0 updates random words of the target, and
// flushes.
func atRandom(update func(ctx context.Context, w *window.Window[uint64], i int) error) setup {
	return func(ctx context.Context, h *harness, _ int) (task, error) {
		w, err := window.Allocate[uint64](ctx, h.world, randomWords)
		if err != nil {
			return task{}, err
		}
		s := scatter(1)
		if h.rank == 0 { // takes the cache lines from the target, whose core zeroed them
			for i := 0; i < randomWords; i += lineSize / elementSize {
				if err := w.PutValue(ctx, target, i, 0); err != nil {
					return task{}, err
				}
			}
		}
		return task{free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
			for range n {
				if err := update(ctx, w, s.next()); err != nil {
					return err
				}
			}
			return w.Flush(ctx, target)
		})}, nil
	}
}
