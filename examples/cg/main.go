// Cg solves a system of linear equations by conjugate gradients. The matrix is sparse,
// symmetric and spread over all ranks by rows.
//
//	grun -n 4 ./examples/cg [-rows 2000] [-entries 8] [-tolerance 1e-10]
//
// In each iteration a rank needs the values of the search direction in the columns of its rows.
// Before the first one, each rank finds which of them other ranks hold, and tells these ranks. Then
// each rank puts the values that another rank needs into that rank's window, by one notified put. A
// rank waits only for ranks from which it needs values.
//
//	put needed values   -->  wait for each signal
//	rows times values, two AllReduce calls for the sums of products
//
// The right side is such that all unknowns are 1. Rank 0 also solves the system alone: both
// solutions agree to the tolerance, and both need as many iterations, or one more or less.
//
// (Hestenes and Stiefel, "Methods of Conjugate Gradients for Solving Linear Systems", 1952.
// The pattern of the matrix is like that of CG in Bailey et al., "The NAS Parallel
// Benchmarks", 1991.)
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	rows, entries int
	tolerance     float64
	out           io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.rows, "rows", 2000, "equations and unknowns")
	flag.IntVar(&o.entries, "entries", 8, "pairs of entries beside the diagonal, for each row")
	flag.Float64Var(&o.tolerance, "tolerance", 1e-10, "norm of the residual, relative to the right side's")
	flag.Parse()
	if flag.NArg() > 0 || o.rows < 1 || o.entries < 0 || !(o.tolerance >= 1e-14 && o.tolerance < 1) {
		fmt.Fprintln(os.Stderr, "usage: grun -n N ./examples/cg [flags]; -tolerance from 1e-14 on, less than 1")
		flag.PrintDefaults()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	first, end := part(o.rows, world.Rank(), world.Size())
	m := newMatrix(o.rows, o.entries, first, end)
	d, err := newDirection(ctx, world, m)
	if err != nil {
		return err
	}
	sum := func(values []float64) error {
		return collectives.AllReduce(ctx, world, collectives.Sum[float64](), values, values)
	}
	if err := world.Barrier(ctx); err != nil {
		return err
	}
	began := time.Now()
	x, iterations, err := solve(m, o.tolerance, func(p []float64) ([]float64, error) { return d.exchange(ctx, p) }, sum)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	if err := o.check(ctx, world, x, iterations); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Fprintf(o.out, "%d equations, %d ranks: %d iterations of %.3f ms, as one rank alone solves them\n",
			o.rows, world.Size(), iterations, seconds/float64(iterations)*1e3)
	}
	return d.free(ctx)
}

// check compares the solution with that of rank 0 alone, and with 1. Kind: collective.
func (o options) check(ctx context.Context, world *runtime.Team, x []float64, iterations int) error {
	counts := make([]int, world.Size())
	for r := range counts {
		first, end := part(o.rows, r, world.Size())
		counts[r] = end - first
	}
	all := make([]float64, o.rows)
	if err := collectives.GatherV(ctx, world, 0, x, all, collectives.Blocks{Counts: counts}); err != nil || world.Rank() > 0 {
		return err
	}
	whole := newMatrix(o.rows, o.entries, 0, o.rows)
	alone, needed, err := solve(whole, o.tolerance,
		func(p []float64) ([]float64, error) { return p, nil }, func([]float64) error { return nil })
	if err != nil {
		return err
	}
	if needed-iterations > 1 || iterations-needed > 1 {
		return fmt.Errorf("%d iterations; one rank alone needs %d", iterations, needed)
	}
	// The condition of the matrix is less than 10, so the error is at most about ten times
	// the residual.
	allowed := 100 * o.tolerance * math.Sqrt(float64(o.rows))
	for i := range all {
		if math.Abs(all[i]-alone[i]) > allowed || math.Abs(all[i]-1) > allowed {
			return fmt.Errorf("unknown %d is %g, one rank alone gets %g, right is 1", i, all[i], alone[i])
		}
	}
	return nil
}

// part returns the part [first, end) of n rows that a rank has.
func part(n, rank, size int) (first, end int) { return n * rank / size, n * (rank + 1) / size }

// owner returns the rank that has a row.
func owner(n, row, size int) int {
	rank := row * size / n
	for {
		switch first, end := part(n, rank, size); {
		case row < first:
			rank--
		case row >= end:
			rank++
		default:
			return rank
		}
	}
}
