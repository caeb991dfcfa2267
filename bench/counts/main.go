// Counts prints the cost of operations between two ranks of this process, in
// requests, not in time.
//
//	counts [-provider ibv] put_flush|get|fetch_add|put_notify N
//
// Operations are of 8 bytes. It prints one line for each number, the sum of all N
// operations and of both ranks:
//
//	posts        calls that handed work requests to a queue pair
//	requests     work requests
//	completions  polled, of requests and of receives
//	receives     posted
//	polls        of completion queues, which depend on time
//	cgo          calls into C, polls among them
//
// c/counts.c does the same over libibverbs and prints the same lines;
// scripts/ibv-counts.sh compares them, and the system calls of both.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
	"github.com/gopgas/gopgas/window"
)

func main() {
	provider := flag.String("provider", "ibv", "provider of the operations: ibv, tcp, or loop with everything queued")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: counts [-provider NAME] put_flush|get|fetch_add|put_notify N")
		flag.PrintDefaults()
	}
	flag.Parse()
	n, err := strconv.Atoi(flag.Arg(1))
	op, known := operations[flag.Arg(0)]
	if flag.NArg() != 2 || err != nil || n < 1 || !known {
		flag.Usage()
		os.Exit(2)
	}
	if err := count(context.Background(), os.Stdout, *provider, op, n); err != nil {
		fmt.Fprintln(os.Stderr, "counts:", err)
		os.Exit(1)
	}
}

// count runs n operations and prints their cost.
func count(ctx context.Context, out io.Writer, provider string, op operation, n int) error {
	var traces traces
	return runtime.RunLocal(ctx, 2, func(ctx context.Context, job *runtime.Job) error {
		team := job.World()
		w, err := window.Allocate[uint64](ctx, team, 1, window.WithSlots(1))
		if err != nil {
			return err
		}
		r := &rank{w: w, me: team.Rank()}
		if err := r.repeat(ctx, op, 2*warmUp, 0); err != nil { // connections are made
			return err
		}
		if err := team.Barrier(ctx); err != nil {
			return err
		}
		before := traces.sum()
		if err := r.repeat(ctx, op, n, 2*warmUp); err != nil {
			return err
		}
		if r.me == 0 {
			traces.sum().minus(before).print(out)
		}
		return w.Free(ctx)
	}, runtime.WithProvider(provider), runtime.WithFMAMax(0), runtime.WithAtomics("nic"), runtime.WithWrap(traces.wrap))
}

// warmUp is the number of uses of each direction ahead of counting.
const warmUp = 8

// A rank is one end of the operations.
type rank struct {
	w   *window.Window[uint64]
	me  int
	dst [1]uint64
}

// An operation is the part of each rank in the i-th of a series.
type operation func(ctx context.Context, r *rank, i int) error

var operations = map[string]operation{
	"put_flush": origin(func(ctx context.Context, r *rank, i int) error {
		if err := r.w.PutValue(ctx, 1, 0, uint64(i)); err != nil {
			return err
		}
		return r.w.Flush(ctx, 1)
	}),
	"get": origin(func(ctx context.Context, r *rank, _ int) error { return r.w.Get(ctx, 1, 0, r.dst[:]) }),
	"fetch_add": origin(func(ctx context.Context, r *rank, _ int) error {
		_, err := window.FetchAdd(ctx, r.w, 1, 0, 1)
		return err
	}),
	"put_notify": notify,
}

// origin makes an operation of rank 0 alone.
func origin(do operation) operation {
	return func(ctx context.Context, r *rank, i int) error {
		if r.me != 0 {
			return nil
		}
		return do(ctx, r, i)
	}
}

// notify alternates its direction: the receiver of one sends the next.
func notify(ctx context.Context, r *rank, i int) error {
	to := i % 2
	if r.me != to {
		r.dst[0] = uint64(i)
		return r.w.PutNotify(ctx, to, 0, r.dst[:], window.Signal{Value: uint64(i)})
	}
	_, _, err := r.w.WaitNotify(ctx, window.Until{Slots: []int{0}, Condition: window.AtLeast, Value: uint64(i)})
	return err
}

// repeat makes an operation n times. from is the number of those before.
func (r *rank) repeat(ctx context.Context, op operation, n, from int) error {
	for i := range n {
		if err := op(ctx, r, from+i+1); err != nil {
			return err
		}
	}
	return nil
}

// traces holds the traces of all ranks.
type traces struct {
	mu  sync.Mutex
	all []*trace.Provider
}

// wrap has a provider counted. The job calls it for each rank.
func (t *traces) wrap(p driver.Provider) driver.Provider {
	t.mu.Lock()
	defer t.mu.Unlock()
	wrapped := trace.New(p)
	t.all = append(t.all, wrapped)
	return wrapped
}

// cost counts requests and calls up to now.
type cost struct {
	posts, requests, completions, receives, polls uint64
	cgo                                           int64
}

// sum adds the counts of all traced devices. The caller compares two sums.
func (t *traces) sum() cost {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := cost{cgo: goruntime.NumCgoCall()}
	for p := range slices.Values(t.all) {
		s := p.Snapshot()
		c.posts += s.Total.PostCalls
		c.requests += s.Total.Requests()
		c.receives += s.Total.Recvs
		c.polls += s.Polls
		for _, n := range s.Total.Completions {
			c.completions += n
		}
	}
	return c
}

// minus returns what c counted beyond b.
func (c cost) minus(b cost) cost {
	return cost{c.posts - b.posts, c.requests - b.requests, c.completions - b.completions, c.receives - b.receives,
		c.polls - b.polls, c.cgo - b.cgo}
}

// print writes the counts in the form that scripts/ibv-counts.awk reads.
func (c cost) print(out io.Writer) {
	fmt.Fprintf(out, "posts %d\nrequests %d\ncompletions %d\nreceives %d\npolls %d\ncrossings %d\n",
		c.posts, c.requests, c.completions, c.receives, c.polls, c.cgo)
}
