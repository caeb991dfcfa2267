//go:build linux

package main

import (
	"context"
	"errors"
	goruntime "runtime"

	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
)

// conveyorRateAll is the number of records a second that each rank pushes to all
// ranks in turn, itself among them. Meanwhile it pulls the records for it.
func conveyorRateAll[R record](ctx context.Context, h *harness, _ int) (task, error) {
	c, err := conveyor.Open[R](ctx, h.world)
	if err != nil {
		return task{}, err
	}
	p := &exchange[R]{carrying: carrying[R]{c: c}, rank: h.rank, ranks: h.world.Size()}
	return task{batch: manyBlocks, run: p.run, free: p.close}, nil
}

// An exchange is a rank's part of a run of records from all to all: record i of rank
// r goes to rank r + i.
type exchange[R record] struct {
	carrying[R]
	rank, ranks int
	left        int // records that this rank still has to pull
}

// incoming returns the number of records for rank if each rank pushes n.
func incoming(n, rank, ranks int) (sum int) {
	for from := range ranks {
		first := (rank - from + ranks) % ranks
		sum += max(0, (n-first+ranks-1)/ranks)
	}
	return sum
}

// run pushes records to all ranks in turn, and pulls those that come meanwhile: a conveyor may be
// full until its owner pulls.
func (p *exchange[R]) run(ctx context.Context, n int) error {
	p.left = incoming(n, p.rank, p.ranks)
	for i := range n {
		p.next[0] = byte(i)
		err := p.pulling(ctx, func() error { return p.c.TryPush((p.rank+i)%p.ranks, p.next) })
		if err != nil {
			return err
		}
	}
	if err := p.pulling(ctx, p.c.TryFlush); err != nil {
		return err
	}
	return p.pull(ctx, p.left)
}

// pulling calls do, and pulls while do finds no room.
func (p *exchange[R]) pulling(ctx context.Context, do func() error) error {
	for {
		if err := do(); !errors.Is(err, rpipe.ErrWouldBlock) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.pullSome(); err != nil {
			return err
		}
		goruntime.Gosched()
	}
}

// pullSome pulls the records that have arrived.
func (p *exchange[R]) pullSome() error {
	for {
		r, _, err := p.c.TryPull()
		if errors.Is(err, rpipe.ErrWouldBlock) {
			return nil
		}
		if err != nil {
			return err
		}
		p.sum += r[0]
		p.left--
	}
}

// pipesRateAll is conveyorRateAll with a block of a pipe for each record.
func pipesRateAll[R record](ctx context.Context, h *harness, _ int) (task, error) {
	opts := singly[R]("singly all")
	ranks := make([]int, h.world.Size())
	for i := range ranks {
		ranks[i] = i
	}
	in, err := fan.OpenIn[R](ctx, h.world, ranks, opts...)
	if err != nil {
		return task{}, err
	}
	p := &spread[R]{in: in, rank: h.rank}
	for to := range ranks {
		w, err := rpipe.OpenWriter[R](ctx, h.world, to, opts...)
		if err != nil {
			return task{}, err
		}
		p.out = append(p.out, w)
	}
	return task{batch: manyBlocks, run: p.run, free: p.close}, nil
}

// A spread is a rank's part of a run of blocks from all to all.
type spread[R record] struct {
	in   *fan.In[R]
	out  []*rpipe.Writer[R]
	rank int
	sum  byte
}

// run reads in another goroutine: ranks that only write would wait for each
// other.
func (p *spread[R]) run(ctx context.Context, n int) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return p.read(ctx, incoming(n, p.rank, len(p.out))) })
	all.Go(func() error { return p.write(ctx, n) })
	return all.Wait()
}

// write writes n records to the ranks in turn.
func (p *spread[R]) write(ctx context.Context, n int) error {
	for i := range n {
		if err := writeRecord(ctx, p.out[(p.rank+i)%len(p.out)], byte(i)); err != nil {
			return err
		}
	}
	return nil
}

// read takes n records from the fan-in, one a block.
func (p *spread[R]) read(ctx context.Context, n int) error {
	for range n {
		b, _, err := p.in.Read(ctx)
		if err != nil {
			return err
		}
		p.sum += b.Mem()[0][0]
		if err := p.in.Free(b); err != nil {
			return err
		}
	}
	return nil
}

// close ends the pipes. Kind: collective.
func (p *spread[R]) close(ctx context.Context) error {
	var all errgroup.Group
	for _, w := range p.out {
		all.Go(func() error { return w.Close(ctx) })
	}
	err := drainAll(ctx, p.in)
	return errors.Join(err, all.Wait())
}
