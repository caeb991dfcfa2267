// Package techniques measures each technique of the parameter server beside the others. All take
// turns in one run, so that their ratios mean something on a busy machine.
package techniques

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/examples/paramserver/store"
	"github.com/gopgas/gopgas/runtime"
)

// Config has the sizes and the number of pushes and pulls.
type Config struct {
	Servers, Keys, Piece int // Piece: elements of a key
	Rounds, Turns        int
	Rows                 []Row
	Bare                 bool // without other systems
}

// A Row is one technique. In mode sync workers read the weights in place, in the other modes a copy.
type Row struct {
	Name string
	Mode store.Mode
	store.Technique
}

// Rows are all techniques of the two papers.
func Rows() []Row {
	return []Row{
		{"write, zero copy, asleep", store.Elastic, store.Technique{}},
		{"read", store.Sync, store.Technique{Read: true, Buffers: 8}},
		{"read of a copy", store.Elastic, store.Technique{Read: true, Buffers: 8}},
		{"poll", store.Elastic, store.Technique{Poll: true}},
		{"ring buffer", store.Elastic, store.Technique{Ring: true}},
		{"goroutine apart", store.Elastic, store.Technique{Apart: true}},
		{"one copy", store.Elastic, store.Technique{Copies: 1}},
		{"two copies", store.Elastic, store.Technique{Copies: 2}},
		{"registered per tensor", store.Elastic, store.Technique{Loose: true}},
		{"1 request buffer", store.Elastic, store.Technique{Buffers: 1}},
		{"2 request buffers", store.Elastic, store.Technique{Buffers: 2}},
		{"4 request buffers", store.Elastic, store.Technique{Buffers: 4}},
		{"8 request buffers", store.Elastic, store.Technique{Buffers: 8}},
	}
}

// A contestant pushes and pulls all parameters n times at all ranks.
type contestant struct {
	name       string
	run        func(ctx context.Context, n int) error
	close      func(ctx context.Context) error
	copies     func() uint64 // bytes that this rank copied so far
	push, pull int           // user-space copies of each byte
	staged     bool          // it may stage bytes
	took       []time.Duration
}

// Table runs all rows in turns. Rank 0 prints to out. Kind: collective.
func Table(ctx context.Context, job *runtime.Job, c Config, out io.Writer) error {
	var all []*contestant
	for _, row := range c.Rows {
		k, err := c.ours(ctx, job, row)
		if err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
		all = append(all, k)
	}
	if !c.Bare {
		others, err := c.otherSystems(ctx, job)
		if err != nil {
			return err
		}
		all = append(all, others...)
	}
	for range c.Turns {
		for _, k := range all {
			if err := c.turn(ctx, job, k); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	for _, k := range all {
		if err := k.close(ctx); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	if job.World().Rank() == 0 {
		c.print(all, out)
	}
	return nil
}

// turn runs one contestant, and checks its copies.
func (c *Config) turn(ctx context.Context, job *runtime.Job, k *contestant) error {
	copied, before := k.copies(), staged(job)
	if err := job.World().Barrier(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := k.run(ctx, c.Rounds); err != nil {
		return err
	}
	sums := []uint64{uint64(time.Since(start)), k.copies() - copied, staged(job) - before}
	if err := collectives.AllReduce(ctx, job.World(), collectives.Max[uint64](), sums[:1], sums[:1]); err != nil {
		return err
	}
	if err := collectives.AllReduce(ctx, job.World(), collectives.Sum[uint64](), sums[1:], sums[1:]); err != nil {
		return err
	}
	k.took = append(k.took, time.Duration(sums[0]))
	moved := uint64(c.Rounds * 4 * c.params() * workers(job, c))
	switch want := uint64(k.push+k.pull) * moved; {
	case sums[1] != want:
		return fmt.Errorf("%d bytes were copied in user space, not %d", sums[1], want)
	case sums[2] >= uint64(4*c.Piece) && !k.staged: // less is of messages of this function's calls
		return fmt.Errorf("gopgas staged %d bytes: keys should leave from their place", sums[2])
	}
	return nil
}

func (c *Config) params() int { return c.Keys * c.Piece }

func workers(job *runtime.Job, c *Config) int { return max(job.World().Size()-c.Servers, 1) }

// staged returns the bytes that gopgas staged so far.
func staged(job *runtime.Job) (n uint64) {
	for _, p := range job.Stats() {
		n += p.Staged
	}
	return n
}

// ours returns a parameter server with a technique, after a drill that fills whole gradients.
func (c *Config) ours(ctx context.Context, job *runtime.Job, row Row) (*contestant, error) {
	var ends []int
	for i := range c.Keys {
		ends = append(ends, (i+1)*c.Piece)
	}
	st, err := store.New(ctx, job, store.DrillOptions(c.Servers, ends, c.Piece, row.Mode, row.Technique), make([]float32, c.params()))
	if err != nil {
		return nil, err
	}
	if zero := row.Copies == 0 && !row.Ring && !row.Loose; zero && !st.InWindow() {
		return nil, fmt.Errorf("tensors lie outside of the window")
	}
	k := &contestant{name: row.Name, close: st.Free, copies: st.Copied, push: row.Copies, pull: row.Copies, staged: row.Ring}
	switch {
	case row.Ring:
		k.push = 1
	case row.Read && row.Mode != store.Sync: // the server makes it
		k.pull = min(row.Copies+1, 2)
	}
	k.run = func(ctx context.Context, n int) error { return drill(ctx, st, n, false) }
	return k, drill(ctx, st, 2, true)
}

// drill runs a drill at all workers, and checks what the servers hold.
func drill(ctx context.Context, st *store.Store, n int, whole bool) error {
	var wait sync.WaitGroup
	var served, worked error
	if st.Serves() {
		wait.Go(func() { _, served = st.Serve(ctx) })
	}
	if w := st.Worker(); w != nil {
		if worked = w.Drill(ctx, n, whole); worked == nil {
			worked = w.Leave(ctx, 0, 0)
		}
	}
	wait.Wait()
	switch {
	case worked != nil:
		return worked
	case served != nil || !st.Serves():
		return served
	}
	return st.Check(whole)
}

// print writes the table: each technique's median time and its ratios to the first technique.
func (c *Config) print(all []*contestant, out io.Writer) {
	fmt.Fprintf(out, "a push and a pull of %d keys of %d KiB each, %d turns of %d rounds: medians, their ratio, ratios of single turns (quartiles), user-space copies of a byte\n",
		c.Keys, 4*c.Piece>>10, c.Turns, c.Rounds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "technique\tms\tratio\tfrom\tto\tcopies of a push\tof a pull\t")
	first := median(all[0].took)
	for _, k := range all {
		m := median(k.took)
		low, high := k.quartiles(all[0])
		fmt.Fprintf(table, "%s\t%.3f\t%.2f\t%.2f\t%.2f\t%d\t%d\t\n", k.name, m.Seconds()*1e3/float64(c.Rounds), m.Seconds()/first.Seconds(), low, high, k.push, k.pull)
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
}

// quartiles returns the ratios to another contestant within which half of the turns lie.
func (k *contestant) quartiles(other *contestant) (low, high float64) {
	ratios := make([]float64, len(k.took))
	for i := range ratios {
		ratios[i] = k.took[i].Seconds() / other.took[i].Seconds()
	}
	slices.Sort(ratios)
	last := len(ratios) - 1
	return ratios[last/4], ratios[last-last/4]
}

// median returns the median of some times.
func median(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}
