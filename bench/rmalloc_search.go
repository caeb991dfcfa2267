//go:build linux

package main

import (
	"context"
	"math/rand/v2"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// searching measures the search of a policy alone, without a pipe. Each round allocates
// one block in an empty shadow heap and releases it.
func searching(policy rmalloc.Policy) setup {
	return func(_ context.Context, h *harness, size int) (task, error) {
		heap, err := rmalloc.New(rmalloc.Config{Size: pipeHeap(size), Policy: policy})
		if err != nil {
			return task{}, err
		}
		count := stride(size) / rmalloc.Granule
		return task{run: h.origin(func(_ context.Context, n int) error {
			for range n {
				a, err := place(heap, size)
				if err != nil {
					return err
				}
				if err := heap.Release(a.Offset()/rmalloc.Granule, count); err != nil {
					return err
				}
			}
			return nil
		})}, nil
	}
}

// place allocates a block and marks it as sent, so that Release takes it back.
func place(heap *rmalloc.Heap, size int) (rmalloc.Addr, error) {
	a, err := heap.Alloc(size)
	if err == nil {
		err = heap.Send(a)
	}
	return a, err
}

// churned is the number of blocks that keep a fragmented heap half full.
const churned = 512

// searchingCrumbs measures the search in a fragmented heap. Blocks of random lengths, up to
// twice the size, fill about half of the heap. Each round replaces one of them at random.
func searchingCrumbs(policy rmalloc.Policy) setup {
	return func(_ context.Context, h *harness, size int) (task, error) {
		n := max(min(churned, rmalloc.MaxHeap/(2*stride(2*size))), 1)
		heap, err := rmalloc.New(rmalloc.Config{Size: 2 * n * stride(2*size), Policy: policy})
		if err != nil {
			return task{}, err
		}
		c := &churn{heap: heap, size: size, live: make([]rmalloc.Range, n), random: rand.New(rand.NewPCG(1, 2))}
		if err := c.replace(10 * n); err != nil {
			return task{}, err
		}
		return task{run: h.origin(func(_ context.Context, n int) error { return c.replace(n) })}, nil
	}
}

// A churn replaces random blocks of a heap by new ones.
type churn struct {
	heap   *rmalloc.Heap
	size   int
	live   []rmalloc.Range
	random *rand.Rand
}

// replace releases a random block and allocates one of a random length, so many times.
func (c *churn) replace(times int) error {
	for range times {
		b := &c.live[c.random.IntN(len(c.live))]
		if b.Count > 0 {
			if err := c.heap.Release(b.Offset, b.Count); err != nil {
				return err
			}
		}
		size := 1 + c.random.IntN(2*c.size)
		a, err := place(c.heap, size)
		if err != nil {
			return err
		}
		*b = rmalloc.Range{Offset: a.Offset() / rmalloc.Granule, Count: stride(size) / rmalloc.Granule}
	}
	return nil
}
