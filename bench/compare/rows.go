//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// A place is one benchmark at one size in one kind of work.
type place struct {
	benchmark string
	size      int
	work
}

// A sample is the figure of a system in one round.
type sample struct {
	figure
	near, far time.Duration // least and greatest distance between cores around the turn; 0 if unknown
}

// A row compares gopgas with its peers at one place.
type row struct {
	place
	unit    string
	systems map[string]map[int]sample // by name and round
	limits  map[string]bool           // names that are limits
}

// rowsOf sorts the figures of all turns into rows.
func rowsOf(turns []turn) []*row {
	rows := map[place]*row{}
	for i := range turns {
		t := &turns[i]
		for _, f := range t.Figures {
			at := place{f.Benchmark, f.Size, t.work}
			r := rows[at]
			if r == nil {
				r = &row{place: at, unit: f.Unit, systems: map[string]map[int]sample{}, limits: map[string]bool{}}
				rows[at] = r
			}
			if r.systems[f.System] == nil {
				r.systems[f.System] = map[int]sample{}
			}
			near, far := min(t.Before, t.After), max(t.Before, t.After)
			r.systems[f.System][t.key()] = sample{f, near, far}
			r.limits[f.System] = t.Limit
		}
	}
	var all []*row
	for _, r := range rows {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.work.String(), b.work.String()),
			cmp.Compare(a.benchmark, b.benchmark), cmp.Compare(a.size, b.size))
	})
	return all
}

// key tells rounds of different groups apart that have the same place.
func (t *turn) key() int {
	return slices.Index(groupNames(), t.Group)<<16 | t.Round
}

// typical returns the median figure of a system.
func (r *row) typical(name string) float64 {
	var values []float64
	for _, s := range r.systems[name] {
		values = append(values, s.Median)
	}
	if len(values) == 0 {
		return 0
	}
	return middle(values)
}

// middle returns the median of values.
func middle(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// best returns the peer, or the limit, of the least median cost; empty if there is none.
func (r *row) best(limit bool) (name string) {
	least := 0.
	for n := range r.systems {
		if n == ours || r.limits[n] != limit {
			continue
		}
		f := figure{Unit: r.unit, Median: r.typical(n)}
		if c := f.cost(); name == "" || c < least || c == least && n < name {
			name, least = n, c
		}
	}
	return name
}

// A comparison holds the ratios of gopgas to a system, one a round.
type comparison struct {
	ratios  []float64
	flipped int // rounds in which the distance between cores changed
}

// against compares gopgas with a system, in the rounds that have both.
func (r *row) against(name string) (c comparison) {
	for round, mine := range r.systems[ours] {
		theirs, both := r.systems[name][round]
		switch {
		case !both:
		case flipped(mine, theirs):
			c.flipped++
		default:
			c.ratios = append(c.ratios, mine.cost()/theirs.cost())
		}
	}
	slices.Sort(c.ratios)
	return c
}

// flipped reports whether the distance between cores changed twofold around two turns.
func flipped(a, b sample) bool {
	if a.near == 0 || b.near == 0 {
		return false // there is no probe, or it was held up
	}
	return max(a.far, b.far) > 2*min(a.near, b.near)
}

// String returns the median and its interval; with few rounds, all ratios lie within.
func (c comparison) String() string {
	if len(c.ratios) == 0 {
		return "-"
	}
	i := spread(c.ratios)
	return fmt.Sprintf("%.2f (%.2f-%.2f)", i.median, i.low, i.high)
}

// median returns the median ratio; 0 without one.
func (c comparison) median() float64 {
	if len(c.ratios) == 0 {
		return 0
	}
	return middle(c.ratios)
}

// A line is a row with the systems of its comparison.
type line struct {
	*row
	Best, Limit     string
	Ratio, OfLimit  comparison
	Ours, Peer, Low float64 // typical figures: gopgas, the best peer, the limit
}

// linesOf compares gopgas with the best peer and with the limit of the machine in each row that has
// gopgas.
func linesOf(rows []*row) (lines []line) {
	for _, r := range rows {
		if r.systems[ours] == nil {
			continue
		}
		l := line{row: r, Best: r.best(false), Limit: r.best(true), Ours: r.typical(ours)}
		l.Ratio, l.OfLimit = r.against(l.Best), r.against(l.Limit)
		l.Peer, l.Low = r.typical(l.Best), r.typical(l.Limit)
		lines = append(lines, l)
	}
	return lines
}

// printLines prints the table: all rows, those ahead and those behind.
func printLines(out io.Writer, lines []line) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "provider\tranks\thow\tbenchmark\tsize\tgopgas\tbest peer\t\tratio\tlimit\tratio\tunit\trounds\tflips\t")
	ahead, behind := 0, 0
	for _, l := range lines {
		switch m := l.Ratio.median(); {
		case m > 1:
			behind++
		case m > 0:
			ahead++
		}
		fmt.Fprintf(table, "%s\t%d\t%v\t%s\t%d\t%s\t%s\t%s\t%v\t%s\t%v\t%s\t%d\t%d\t\n", l.Provider, l.Ranks, l.work, l.benchmark, l.size,
			number(l.Ours), number(l.Peer), l.Best, l.Ratio, number(l.Low), l.OfLimit, l.unit, len(l.Ratio.ratios), l.Ratio.flipped)
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
	fmt.Fprintf(out, "ahead in %d rows, behind in %d; a ratio is that of costs, above 1 gopgas is behind\n", ahead, behind)
}

// number returns a figure as the tables print it. "-" stands for 0, a figure that is missing.
func number(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g", v)
}
