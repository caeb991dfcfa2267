//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A cell is one benchmark at one size over one provider.
type cell struct {
	benchmark, provider string
	size                int
}

// ratios are those of a cell, one of each kind a round.
type ratios struct{ aa, ab []float64 }

// A measurement is one run.
type measurement struct{ cells map[cell]*ratios }

func newMeasurement() *measurement { return &measurement{map[cell]*ratios{}} }

// round runs OLD, OLD once more and NEW over each provider. Rounds differ in the order.
func (m *measurement) round(ctx context.Context, o *options, round int, before, after version) error {
	for _, provider := range o.providers {
		turns := [3]version{before, before, after}
		var costs [3]map[cell]float64
		for i := range turns {
			k := (i + round) % len(turns)
			results, err := turns[k].run(ctx, o, provider)
			if err != nil {
				return err
			}
			costs[k] = map[cell]float64{}
			for _, r := range results {
				costs[k][cell{r.Benchmark, provider, r.Size}] = r.cost()
			}
		}
		m.add(costs[0], costs[1], costs[2])
	}
	return nil
}

// add takes the costs of one round.
func (m *measurement) add(old, again, after map[cell]float64) {
	for c, cost := range old {
		a, b := again[c], after[c]
		if a == 0 || b == 0 {
			continue // one of the versions lacks the benchmark
		}
		if m.cells[c] == nil {
			m.cells[c] = &ratios{}
		}
		m.cells[c].aa = append(m.cells[c].aa, a/cost)
		m.cells[c].ab = append(m.cells[c].ab, b/cost)
	}
}

// print prints a line for each cell, and returns the slower ones.
func (m *measurement) print(w io.Writer) (slower []cell) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "benchmark\tprovider\tsize\tA/A\tA/B\t")
	for _, c := range m.order() {
		r := m.cells[c]
		verdict := ""
		if r.slower() {
			verdict, slower = "slower", append(slower, c)
		} else if faster := (&ratios{aa: r.ab, ab: r.aa}); faster.slower() {
			verdict = "faster"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%v\t%v\t%s\n", c.benchmark, c.provider, c.size, spread(r.aa), spread(r.ab), verdict)
	}
	table.Flush() //nolint:errcheck // w is the terminal
	return slower
}

// order returns the cells by provider, benchmark and size.
func (m *measurement) order() []cell {
	var all []cell
	for c := range m.cells {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.benchmark, b.benchmark), cmp.Compare(a.size, b.size))
	})
	return all
}

// slower reports whether the A/B interval lies above the A/A interval.
func (r *ratios) slower() bool { return spread(r.ab).low > spread(r.aa).high }

// An interval holds a median, and covers that of the distribution with a confidence of at
// least 95 percent.
type interval struct{ low, median, high float64 }

func (i interval) String() string { return fmt.Sprintf("%.3f (%.3f-%.3f)", i.median, i.low, i.high) }

// leastRounds is the least number of samples that give such an interval.
const leastRounds = 6

// spread returns the interval of samples. Number k of the sorted samples, counted from 0, may lie
// above the true median. The probability is that of at most k heads among n throws of a coin.
func spread(samples []float64) interval {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	k, below, chance := 0, 0.0, 1.0
	for range n {
		chance /= 2
	}
	for { // chance: exactly k heads; below: fewer
		if below += chance; below > 0.025 {
			break
		}
		chance = chance * float64(n-k) / float64(k+1)
		k++
	}
	k = max(k-1, 0)
	return interval{s[k], (s[(n-1)/2] + s[n/2]) / 2, s[n-1-k]}
}
