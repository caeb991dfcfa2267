// Globalarray sorts numbers that are spread over all ranks, by counting.
//
//	grun -n 4 ./examples/globalarray [-numbers 4096] [-below 1000]
//
// Three global arrays hold the numbers, the count of each value, and the result. A program
// reads and writes them by index, whichever rank holds an element, and loops over the
// elements that lie at its own rank:
//
//	for _, v := range numbers.local() { counts.add(ctx, *v, 1) }
//
// Each rank counts its numbers. A scan turns the counts into the first place of each value.
// Then each rank takes a place for each of its numbers, and stores it there. Rank 0 sorts
// all numbers alone and compares.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	numbers, below int
	out            io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.numbers, "numbers", 4096, "how many numbers to sort")
	flag.IntVar(&o.below, "below", 1000, "the numbers are less than this")
	flag.Parse()
	if flag.NArg() > 0 || o.numbers < 1 || o.below < 1 {
		fmt.Fprintln(os.Stderr, "usage: grun -n N ./examples/globalarray [flags]")
		flag.PrintDefaults()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	numbers, err := newArray[int64](ctx, world, "numbers", o.numbers)
	if err != nil {
		return err
	}
	for i, v := range numbers.local() {
		*v = o.number(i)
	}
	if err := numbers.sync(ctx); err != nil {
		return err
	}
	sorted, err := countingSort(ctx, world, numbers, o.below)
	if err != nil {
		return err
	}
	if world.Rank() == 0 {
		if err := o.check(ctx, sorted); err != nil {
			return err
		}
		fmt.Fprintf(o.out, "%d numbers less than %d sorted at %d ranks, as one rank sorts them\n", o.numbers, o.below, world.Size())
	}
	if err := sorted.free(ctx); err != nil {
		return err
	}
	return numbers.free(ctx)
}

// number returns number i.
func (o options) number(i int) int64 {
	return rand.New(rand.NewPCG(1, uint64(i))).Int64N(int64(o.below))
}

// countingSort returns a sorted array of the numbers, which are less than below. Kind:
// collective.
func countingSort(ctx context.Context, world *runtime.Team, numbers *array[int64], below int) (*array[int64], error) {
	places, err := newArray[int64](ctx, world, "places", below)
	if err != nil {
		return nil, err
	}
	for _, v := range numbers.local() {
		if err := places.add(ctx, int(*v), 1); err != nil {
			return nil, err
		}
	}
	if err := places.sync(ctx); err != nil {
		return nil, err
	}
	if err := firstPlaces(ctx, world, places); err != nil {
		return nil, err
	}
	sorted, err := newArray[int64](ctx, world, "sorted", numbers.n)
	if err != nil {
		return nil, err
	}
	for _, v := range numbers.local() {
		place, err := places.next(ctx, int(*v))
		if err == nil {
			err = sorted.put(ctx, int(place), *v)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := sorted.sync(ctx); err != nil {
		return nil, err
	}
	return sorted, places.free(ctx)
}

// firstPlaces replaces the count of each value by the number of smaller numbers. Kind:
// collective.
func firstPlaces(ctx context.Context, world *runtime.Team, places *array[int64]) error {
	sum := []int64{0}
	for _, count := range places.local() {
		sum[0] += *count
	}
	before := []int64{0} // rank 0's stays
	if err := collectives.ExScan(ctx, world, collectives.Sum[int64](), sum, before); err != nil {
		return err
	}
	next := before[0]
	for _, p := range places.local() {
		*p, next = next, next+*p
	}
	return places.sync(ctx)
}

// check compares the sorted numbers with those that one rank sorts alone.
func (o options) check(ctx context.Context, sorted *array[int64]) error {
	want, got := make([]int64, o.numbers), make([]int64, o.numbers)
	for i := range want {
		want[i] = o.number(i)
	}
	slices.Sort(want)
	if err := sorted.read(ctx, 0, got); err != nil {
		return err
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("place %d holds %d, want %d", i, got[i], want[i])
		}
	}
	last, err := sorted.get(ctx, o.numbers-1)
	if err == nil && last != want[o.numbers-1] {
		err = fmt.Errorf("the last number is %d, want %d", last, want[o.numbers-1])
	}
	return err
}
