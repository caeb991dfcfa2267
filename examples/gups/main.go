// Gups updates random words of a table that is spread over all ranks, as HPCC's
// RandomAccess does. It prints the number of updates a second in billions (GUPS).
//
//	grun -n 4 ./examples/gups [-log2 20] [-updates N] [-verify=false]
//
// The table has 2^k words of 8 bytes; each starts with its own number. An update
// xors a pseudo-random number into the word that the number's low bits name: one
// atomic operation at the rank of that word. The default is four updates a word;
// each rank makes its share of them.
//
// To verify, all ranks make the same updates once more. Since x^a^a = x, the
// table then has its first content again if no update was lost; a word that
// differs is an error.
//
// (Luszczek, Dongarra et al., "Introduction to the HPC Challenge Benchmark
// Suite", 2005. There, updates may be batched and up to 1 % of them lost. Here
// each is an operation of its own, and none may be lost.)
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	log2    int
	updates uint64
	verify  bool
	out     io.Writer
}

const (
	updatesPerWord = 4
	maxLog2        = 40
)

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.log2, "log2", 20, "the table has two to this many words")
	flag.Uint64Var(&o.updates, "updates", 0, "updates of all ranks together (0: four a word)")
	flag.BoolVar(&o.verify, "verify", true, "check the table afterward")
	flag.Parse()
	if flag.NArg() > 0 || o.log2 < 0 || o.log2 > maxLog2 {
		fmt.Fprintf(os.Stderr, "usage: grun -n N ./examples/gups [flags]; -log2 from 0 to %d\n", maxLog2)
		flag.PrintDefaults()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o options) run(ctx context.Context, job *runtime.Job) error {
	if o.updates == 0 {
		o.updates = updatesPerWord << o.log2
	}
	t, err := newTable(ctx, job.World(), o.log2)
	if err != nil {
		return err
	}
	from, to := share(o.updates, job.World().Rank(), job.World().Size())
	seconds, err := t.timed(ctx, from, to)
	if err != nil {
		return err
	}
	job.Note("updates", int64(to-from))
	if err := o.report(ctx, job.World(), seconds); err != nil {
		return err
	}
	if !o.verify {
		return t.w.Free(ctx)
	}
	return o.check(ctx, job.World(), t, from, to)
}

// share returns the range of updates that a rank makes.
func share(updates uint64, rank, size int) (from, to uint64) {
	r, each, rest := uint64(rank), updates/uint64(size), updates%uint64(size)
	from = r*each + min(r, rest)
	to = from + each
	if r < rest {
		to++
	}
	return from, to
}
