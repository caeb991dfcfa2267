//go:build linux

package main

import (
	"context"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/rpipe"
)

// Each of many pipes is small.
const (
	peersWidth = 256
	peersSize  = 8
)

func smallPipes(name string) []rpipe.Option {
	return []rpipe.Option{rpipe.WithName(name), rpipe.WithWidth(peersWidth), rpipe.WithHeap(peersWidth * stride(peersSize))}
}

// rpipePeers writes into n pipes at random. The time is the writer's cost; the
// reader, which reads the pipes in the same order, has its own.
func rpipePeers(n int) setup {
	return func(ctx context.Context, h *harness, _ int) (task, error) {
		if h.rank > target {
			return task{run: h.origin(nil)}, nil
		}
		p := &peers{order: rand.New(rand.NewPCG(3, 4))}
		var run func(ctx context.Context, n int) error
		if h.rank == 0 {
			run = p.write
		} else {
			run = p.read
		}
		if err := p.open(ctx, h, n, smallPipes("peers")); err != nil {
			return task{}, err
		}
		return task{batch: h.window, each: h.window, run: run, free: p.close}, p.connect(ctx)
	}
}

// peers are this rank's ends of the pipes: all writers or all readers.
type peers struct {
	writers []*rpipe.Writer[byte]
	readers []*rpipe.Reader[byte]
	order   *rand.Rand // the same at both ranks
	sum     byte
}

// open opens n pipes from rank 0 to the target.
func (p *peers) open(ctx context.Context, h *harness, n int, opts []rpipe.Option) error {
	for range n {
		if h.rank == 0 {
			w, err := rpipe.OpenWriter[byte](ctx, h.world, target, opts...)
			if err != nil {
				return err
			}
			p.writers = append(p.writers, w)
			continue
		}
		r, err := rpipe.OpenReader[byte](ctx, h.world, 0, opts...)
		if err != nil {
			return err
		}
		p.readers = append(p.readers, r)
	}
	return nil
}

// connecting bounds the number of pipes that connect or close at the same time.
const connecting = 32

// each calls a function for every pipe, for several at the same time.
func (p *peers) each(writing func(*rpipe.Writer[byte]) error, reading func(*rpipe.Reader[byte]) error) error {
	var all errgroup.Group
	all.SetLimit(connecting)
	for _, w := range p.writers {
		all.Go(func() error { return writing(w) })
	}
	for _, r := range p.readers {
		all.Go(func() error { return reading(r) })
	}
	return all.Wait()
}

// connect sends a block through each.
func (p *peers) connect(ctx context.Context) error {
	return p.each(
		func(w *rpipe.Writer[byte]) error { return write(ctx, w, peersSize, nil) },
		func(r *rpipe.Reader[byte]) error { _, err := use(ctx, r, 0); return err })
}

// close ends the pipes. Kind: collective.
func (p *peers) close(ctx context.Context) error {
	return p.each(
		func(w *rpipe.Writer[byte]) error { return w.Close(ctx) },
		func(r *rpipe.Reader[byte]) error { return drain(ctx, r) })
}

// write writes n blocks to random pipes. The reader draws the same ones.
func (p *peers) write(ctx context.Context, n int) error {
	for range n {
		if err := write(ctx, p.writers[p.order.IntN(len(p.writers))], peersSize, nil); err != nil {
			return err
		}
	}
	return nil
}

// read reads n blocks from the pipes that the writer draws.
func (p *peers) read(ctx context.Context, n int) (err error) {
	for range n {
		if p.sum, err = use(ctx, p.readers[p.order.IntN(len(p.readers))], p.sum); err != nil {
			return err
		}
	}
	return nil
}
