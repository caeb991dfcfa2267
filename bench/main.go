// Bench measures the cost of one-sided operations.
//
//	grun -n 2 ./bench NAME... [-size 8,4K,1M] [-time 500ms] [-json]
//	grun -n 2 ./bench all          everything
//	grun -n 1 ./bench -list        what there is
//
// Without -json it prints tables like the OSU micro-benchmarks': lines of "#"
// and then size and result. With -json it prints one object a line.
//
// # How it measures
//
// Rank 0 acts on rank 1; further ranks wait, as they would in a program. It times
// operations in batches that are long enough for the clock not to matter. Before
// each batch, untimed, ranks rewrite their sources and read every line that came.
// So no batch finds the caches as the last one left them. If ranks take turns
// (put_notify_latency), they do so for every message. The numbers are the least,
// the median and the 99th percentile over batches.
//
// # Floors
//
// A name that ends in _floor is the same work without this library: loads, stores and
// atomics on the mapped memory itself. If none is mapped, it uses a raw socket. If
// both are asked for, a benchmark and its floor take turns every few milliseconds, so
// that both see the same machine. The ratio is that of their medians.
//
// # Switch points
//
// A window chooses the way of a put by its size, and by whether the peer is mapped.
// switch_mapped, switch_fma and switch_bulk force each way in one job, below the
// window. They use a region of internal/fabric; a copy of it without the mapping
// goes through the queue. "switch" stands for all three. Each line's ratio is to
// the best of them at that size; a star marks the way that a window would take.
//
// # Pipes
//
// Further names of groups, which are compared in the same way:
//
//	rpipe_latency    a message pushed, as two puts, pulled, over a window, by hand, and through a channel
//	loggp            the processor time of a message at both ends, and of a stream: with channel_latency,
//	                 the constants of bench/sim
//	rpipe_alloc      the same in fragmented heaps: policies, and what each Alloc's
//	                 asking costs (next fit with and without it)
//	rmalloc_fresh    the search for a hole alone, no communication: nothing but one hole
//	rmalloc_crumbs   the same where blocks come and go at random
//	rpipe_peers      Alloc and Write at the writer, by the number of pipes
//	aggregate_rate   blocks through many pipes to one reader
//	conveyor_rate_8, conveyor_rate_16, conveyor_rate_64
//	                 small records by conveyor, each in a block of its own, and as values of a channel
//
//	coll_broadcast, coll_reduce, coll_allreduce, coll_gather, coll_allgather, coll_scatter,
//	coll_reducescatter, coll_alltoall, coll_scan, coll_neighbor_alltoall
//	                 collective calls among all ranks, in buffers of the heap and in
//	                 the caller's slices; coll_barrier is a barrier
//
// Each collective call gets new input, and its time lasts until the last rank has
// its result.
//
// scripts/pingpong.sh compares rpipe_latency with a C program, scripts/collectives.sh
// the collectives with MPI's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	names []string
	sizes []int
	time  time.Duration
	json  bool
	list  bool
	out   io.Writer
}

func main() {
	o, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// parse reads names and flags, in any order.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{out: out}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := flags.String("size", "8,1K,4K,64K,1M", "sizes in bytes, for benchmarks that have one")
	flags.DurationVar(&o.time, "time", 500*time.Millisecond, "time for each benchmark and size")
	flags.BoolVar(&o.json, "json", false, "print one JSON object a line")
	flags.BoolVar(&o.list, "list", false, "print the benchmarks' names")
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		o.names, args = append(o.names, flags.Arg(0)), flags.Args()[1:]
	}
	for s := range strings.SplitSeq(*sizes, ",") {
		n, err := runtime.ParseSize(s)
		if err != nil {
			return nil, err
		}
		if n < 1 || n > maxSize {
			return nil, fmt.Errorf("-size %s: sizes go from 1 to %d", s, maxSize)
		}
		o.sizes = append(o.sizes, int(n))
	}
	return o, o.check()
}

// maxSize bounds -size, so that a typing error does not ask for all memory.
const maxSize = 1 << 30

func (o *options) check() error {
	if len(o.names) == 0 && !o.list {
		return errors.New("name benchmarks, or all; -list prints their names")
	}
	_, err := o.groups()
	return err
}

// groups returns the chosen benchmarks; benchmarks to compare are in one group.
func (o *options) groups() ([][]benchmark, error) {
	known := benchmarks()
	var chosen []benchmark
	for _, name := range o.names {
		found := slices.DeleteFunc(slices.Clone(known), func(b benchmark) bool {
			return name != "all" && name != b.name && name != b.group
		})
		if len(found) == 0 {
			return nil, fmt.Errorf("no benchmark %q; -list prints their names", name)
		}
		chosen = append(chosen, found...)
	}
	var groups [][]benchmark
	for _, b := range known {
		if !slices.ContainsFunc(chosen, func(c benchmark) bool { return c.name == b.name }) {
			continue
		}
		if last := len(groups) - 1; last >= 0 && groups[last][0].base() == b.base() {
			groups[last] = append(groups[last], b)
		} else {
			groups = append(groups, []benchmark{b})
		}
	}
	return groups, nil
}

// run runs at each rank.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	if o.list {
		if job.World().Rank() == 0 {
			printList(o.out)
		}
		return nil
	}
	if job.World().Size() < 2 {
		return errors.New("one rank has no target to measure; start two ranks or more: grun -n 2 ./bench")
	}
	h, err := newHarness(ctx, job)
	if err != nil {
		return err
	}
	groups, err := o.groups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := o.runGroup(ctx, h, g); err != nil {
			return err
		}
	}
	return h.close(ctx)
}

// runGroup measures a group at all sizes.
func (o *options) runGroup(ctx context.Context, h *harness, group []benchmark) error {
	sizes := o.sizes
	if !group[0].sized {
		sizes = []int{max(group[0].bytes, 8)}
	}
	var results []result
	for _, size := range sizes {
		r, err := h.compare(ctx, group, size, o.time)
		if err != nil {
			return fmt.Errorf("%s at %d bytes: %w", group[0].base(), size, err)
		}
		if o.json && h.rank == 0 {
			printJSON(o.out, r)
		}
		results = append(results, r...)
	}
	if !o.json && h.rank == 0 {
		printTables(o.out, group, results)
	}
	return nil
}
