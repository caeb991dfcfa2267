// Kernels runs three of the Parallel Research Kernels. Each prints its rate, as the
// original does, and checks its result by the formula of the original.
//
//	grun -n 4 ./examples/kernels [-kernel all] [-order 240] [-iterations 10]
//
//	stencil     a star of radius 2 on a square grid; ranks in two dimensions exchange edges
//	transpose   b += a transposed, a += 1; all ranks exchange tiles
//	wavefront   each value from three neighbors; a rank waits for the one on its left, row by row
//
// The fourth, random access, is ./examples/gups.
//
// (Van der Wijngaart and Mattson, "The Parallel Research Kernels", HPEC 2014.)
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
	kernel            string
	order, iterations int
	out               io.Writer
}

// A kernel is one rank's part of a problem.
type kernel interface {
	// iterate makes an iteration. Kind: collective.
	iterate(ctx context.Context, number int) error
	// verify checks the result of so many iterations. Kind: collective.
	verify(ctx context.Context, iterations int) error
	// rate returns the work of one iteration of all ranks, and its unit.
	rate() (work float64, unit string)
	free(ctx context.Context) error
}

// kernels are all of them, in the order in which they run.
var kernels = []struct {
	name string
	open func(ctx context.Context, world *runtime.Team, order int) (kernel, error)
}{
	{"stencil", newStencil},
	{"transpose", newTranspose},
	{"wavefront", newWavefront},
}

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.kernel, "kernel", "all", "stencil, transpose, wavefront or all")
	flag.IntVar(&o.order, "order", 240, "rows and columns of the grid or matrix")
	flag.IntVar(&o.iterations, "iterations", 10, "timed iterations; one more goes before them")
	flag.Parse()
	if flag.NArg() > 0 || !o.known() || o.order < 1 || o.iterations < 1 {
		fmt.Fprintln(os.Stderr, "usage: grun -n N ./examples/kernels [flags]")
		flag.PrintDefaults()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// known reports whether the flag names a kernel, or all.
func (o *options) known() bool {
	for _, k := range kernels {
		if o.kernel == k.name || o.kernel == "all" {
			return true
		}
	}
	return false
}

// run runs at each rank.
func (o options) run(ctx context.Context, job *runtime.Job) error {
	for _, k := range kernels {
		if o.kernel != k.name && o.kernel != "all" {
			continue
		}
		one, err := k.open(ctx, job.World(), o.order)
		if err == nil {
			err = o.time(ctx, job.World(), k.name, one)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// time runs a kernel, checks its result, and prints its rate.
func (o *options) time(ctx context.Context, world *runtime.Team, name string, k kernel) error {
	var began time.Time
	for i := range 1 + o.iterations {
		if i == 1 { // the first one warms up
			if err := world.Barrier(ctx); err != nil {
				return err
			}
			began = time.Now()
		}
		if err := k.iterate(ctx, i); err != nil {
			return fmt.Errorf("iteration %d: %w", i, err)
		}
	}
	if err := world.Barrier(ctx); err != nil {
		return err
	}
	seconds := time.Since(began).Seconds() / float64(o.iterations)
	if err := k.verify(ctx, 1+o.iterations); err != nil {
		return err
	}
	if world.Rank() == 0 {
		work, unit := k.rate()
		fmt.Fprintf(o.out, "%-9s  order %d, %d ranks: %.1f %s, %.3f ms an iteration, verified\n",
			name, o.order, world.Size(), work/seconds/1e6, unit, seconds*1e3)
	}
	return k.free(ctx)
}

// part returns the part [first, end) of n things that one of so many shares has.
func part(n, share, shares int) (first, end int) {
	return n * share / shares, n * (share + 1) / shares
}
