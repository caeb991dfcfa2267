//go:build linux

package main

import (
	"context"
	"math/rand/v2"

	"github.com/gopgas/gopgas/rpipe"
)

// allocating plays ping-pong through pipes whose heaps are fragmented. So the
// time of a message shows the cost of a policy: the search for a hole, and its
// synchronization.
func allocating(policy rpipe.Policy, sync rpipe.Sync) setup {
	return func(ctx context.Context, h *harness, size int) (task, error) {
		n := crumbs(size)
		heap := min(n*(2*size+lineSize)+blocksAtOnce*stride(size), 1<<30) / lineSize * lineSize
		d, err := h.duplex(ctx, size, size, rpipe.WithHeap(heap), rpipe.WithPolicy(policy), rpipe.WithSync(sync))
		if err != nil {
			return task{}, err
		}
		held, err := d.fragment(ctx, n)
		return task{run: h.pingPong(d.send, d.receive), free: func(ctx context.Context) error {
			for _, b := range held {
				if err := d.w.Free(b); err != nil {
					return err
				}
			}
			return d.close(ctx)
		}}, err
	}
}

// Fragmented heaps had a hundred blocks, or fewer if they are large.
const (
	mostCrumbs  = 128
	leastCrumbs = 8
	crumbsBytes = 2 << 20
)

func crumbs(size int) int { return min(max(crumbsBytes/size, leastCrumbs), mostCrumbs) }

// fragment allocates n blocks of up to twice the size, in random order, and frees
// every other one.
func (d *duplex) fragment(ctx context.Context, n int) (held []rpipe.Block[byte], err error) {
	if d.w == nil {
		return nil, nil
	}
	random := rand.New(rand.NewPCG(1, 2))
	var gaps []rpipe.Block[byte]
	for i := range n {
		b, err := d.w.Alloc(ctx, 1+random.IntN(2*d.size))
		if err != nil {
			return nil, err
		}
		if i%2 == 0 {
			held = append(held, b)
		} else {
			gaps = append(gaps, b)
		}
	}
	for _, b := range gaps {
		if err := d.w.Free(b); err != nil {
			return nil, err
		}
	}
	return held, nil
}
