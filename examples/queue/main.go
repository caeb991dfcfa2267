// Queue has all ranks push elements to a queue at rank 0, which pops them.
//
//	grun -n 4 ./examples/queue [-elements 2000] [-places 16]
//
// Each rank pushes its numbers in order. Rank 0 checks that each element arrives once, and
// that the elements of each rank arrive in the order of their pushes. The queue is short,
// so pushers wait for room again and again.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	elements, places int
	out              io.Writer
}

// An element says which of a rank's pushes it is.
type element struct{ Rank, Number int64 }

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.elements, "elements", 2000, "pushes of each rank")
	flag.IntVar(&o.places, "places", 16, "elements that the queue holds")
	flag.Parse()
	if flag.NArg() > 0 || o.elements < 0 || o.places < 1 {
		fmt.Fprintln(os.Stderr, "usage: grun -n N ./examples/queue [flags]")
		flag.PrintDefaults()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	const owner = 0
	q, err := newQueue[element](ctx, world, owner, o.places)
	if err != nil {
		return err
	}
	began := time.Now()
	pushed := make(chan error, 1)
	go func() { pushed <- o.push(ctx, q) }()
	if world.Rank() == owner {
		if err := o.pop(ctx, q); err != nil {
			return err
		}
		all := o.elements * world.Size()
		fmt.Fprintf(o.out, "%d elements of %d ranks, each once and in order, %.3f million a second\n",
			all, world.Size(), float64(all)/time.Since(began).Seconds()/1e6)
	}
	if err := <-pushed; err != nil {
		return err
	}
	return q.free(ctx)
}

// push pushes this rank's elements.
func (o options) push(ctx context.Context, q *queue[element]) error {
	for i := range o.elements {
		if err := q.push(ctx, element{int64(q.team.Rank()), int64(i)}); err != nil {
			return fmt.Errorf("push %d: %w", i, err)
		}
	}
	return nil
}

// pop pops the elements of all ranks, and checks their order.
func (o options) pop(ctx context.Context, q *queue[element]) error {
	next := make([]int64, q.team.Size())
	for i := range o.elements * q.team.Size() {
		e, err := q.pop(ctx)
		if err != nil {
			return fmt.Errorf("pop %d: %w", i, err)
		}
		if e.Rank < 0 || e.Rank >= int64(len(next)) || e.Number != next[e.Rank] {
			return fmt.Errorf("pop %d: got element %d of rank %d out of order", i, e.Number, e.Rank)
		}
		next[e.Rank]++
	}
	return nil
}
