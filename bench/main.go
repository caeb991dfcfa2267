//go:build linux

// Bench measures the cost of one-sided operations.
//
//	grun -n 2 ./bench NAME... [-size 8,4K,1M] [-time 500ms] [-json | -benchstat]
//	grun -n 2 ./bench osu_put_latency -m 8:4194304 -i 1000 -x 100 -s flush
//	grun -n 2 ./bench all          everything
//	grun -n 1 ./bench -list        what there is
//
// It prints tables: lines of "#" and then size and result. With -json it prints one
// object a line, with -benchstat the lines that the program benchstat reads, one for
// each turn.
//
// # Names and options of OSU's programs
//
// Many benchmarks have a second name, that of a program of the OSU micro-benchmarks. -list prints both. By
// that name a benchmark runs alone, without its floor, at powers of two, and prints
// OSU's columns: the mean, as OSU's programs do, not the median.
//
//	-m [MIN:]MAX   powers of two from MIN to MAX bytes
//	-i N           iterations for each size, in place of -time
//	-x N           iterations to warm up
//	-s SYNC        synchronization of a put or get: flush, flush_local, lock or fence
//	-f             full: least and greatest mean of a rank, and iterations
//	-W N           operations under way in a bandwidth test
//	-z             50th, 90th and 99th percentile of single operations
//
// All benchmarks take these options. Two more are this program's own. -buffers N uses N
// buffers in turn: with 64 of them, caches are cold. -lockstep has a barrier follow each
// collective call, so that no rank runs ahead; the barrier counts as time.
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
// A batch whose length was found under a disturbance would be too short for the clock.
// Rank 0 lengthens it, drops the samples taken so far, and repeats them. With -z the
// clock is read around each operation; a histogram (HdrHistogram) holds their times.
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
// A window chooses the way of a put by its size, and by whether the peer is mapped. The benchmarks
// switch_mapped, switch_fma and switch_bulk force each way in one job, below the window. They use a
// region of internal/fabric; a copy of it without the mapping goes through the queue. "switch"
// stands for all three. Each line's ratio is to the best of them at that size; a star marks the way
// that a window would take.
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
//	coll_reducescatter, coll_alltoall, coll_scan, coll_exscan, coll_neighbor_allgather, coll_neighbor_alltoall
//	                 collective calls among all ranks, in buffers of the heap and in
//	                 the caller's slices; coll_barrier is a barrier
//	coll_allreduce_op, coll_allreduce_sliceop
//	                 AllReduce by an operator of the program, of elements and of slices
//	overlap_NAME     a started call, a computation as long, and both at once
//	init, memory, memory_peer
//	                 time to join a job; memory of a rank, and more for each connected peer
//
// Each collective call gets new input, and its time lasts until the last rank has
// its result.
//
// scripts/pingpong.sh compares rpipe_latency with a C program. bench/compare compares
// gopgas with MPI, OpenSHMEM and the machine's limits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gopgas/gopgas/runtime"
)

func main() {
	began := time.Now()
	o, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	o.began = began
	runtime.Main(o.run)
}

// run runs at each rank.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	if o.list {
		if job.World().Rank() == 0 {
			printList(o.out)
		}
		return nil
	}
	start, err := o.reached(ctx, job)
	if err != nil {
		return err
	}
	if job.World().Size() < 2 {
		return errors.New("one rank has no target to measure; start two ranks or more: grun -n 2 ./bench")
	}
	h, err := newHarness(ctx, job, o.knobs)
	if err != nil {
		return err
	}
	h.start = start
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

// because adds the cause of the context to an error that follows from its end: a socket's
// errors do not say it.
func because(ctx context.Context, err error) error {
	deadline, has := ctx.Deadline()
	if has && !time.Now().Before(deadline) {
		<-ctx.Done() // the socket's timer may expire a moment earlier
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
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
			return fmt.Errorf("%s at %d bytes: %w", group[0].base(), size, because(ctx, err))
		}
		if h.rank == 0 {
			o.printSize(r)
		}
		results = append(results, r...)
	}
	if h.rank == 0 {
		o.printGroup(group, results)
	}
	return nil
}
