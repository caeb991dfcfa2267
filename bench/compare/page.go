//go:build linux

package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/gopgas/gopgas/bench/curves"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A tableLine is a line as the page shows it.
type tableLine struct {
	How, Benchmark, Provider, Unit string
	Ranks, Size, Rounds, Flips     int
	Ours, Peer, Best, Limit        string
	Ratio, OfLimit                 string
	Behind                         bool
}

// A chart draws a benchmark over its sizes, a curve for each system.
type chart struct {
	Title string
	SVG   template.HTML
}

// report prints the table and writes the page.
func (o *options) report(out io.Writer, turns []turn) error {
	rows := rowsOf(turns)
	lines := linesOf(rows)
	printLines(out, lines)
	if o.renews != "" && len(rows) > 0 {
		if err := writeResults(o.renews, turns[len(turns)-1].On, lines); err != nil {
			return err
		}
	}
	if o.page == "" || len(rows) == 0 {
		return nil
	}
	f, err := os.Create(o.page)
	if err != nil {
		return fmt.Errorf("%w; name another file with -page", err)
	}
	err = writePage(f, turns, rows, lines)
	if closed := f.Close(); err == nil {
		err = closed
	}
	fmt.Fprintf(out, "curves are in %s\n", o.page)
	return err
}

// writePage writes compare.html: the table, the drawings and the state of the machine during the
// turns.
func writePage(out io.Writer, turns []turn, rows []*row, lines []line) error {
	charts, err := chartsOf(rows)
	if err != nil {
		return err
	}
	near, far := distances(turns)
	return pageTemplate.Execute(out, struct {
		Cores     int
		Near, Far string
		First     string
		Last      string
		Turns     int
		Failed    []string
		Lines     []tableLine
		Charts    []chart
	}{goruntime.NumCPU(), near, far, turns[0].Load, turns[len(turns)-1].Load, len(turns), failures(turns), tableOf(lines), charts})
}

// distances returns the least and greatest time between cores.
func distances(turns []turn) (near, far string) {
	least, most := turns[0].Before, turns[0].Before
	for i := range turns {
		least, most = min(least, turns[i].Before, turns[i].After), max(most, turns[i].Before, turns[i].After)
	}
	return least.String(), most.String()
}

// failures returns the different errors of turns.
func failures(turns []turn) (errs []string) {
	for i := range turns {
		if e := turns[i].Error; e != "" && !slices.Contains(errs, e) {
			errs = append(errs, e)
		}
	}
	return errs
}

// tableOf returns the lines as the page's template prints them.
func tableOf(lines []line) (all []tableLine) {
	for _, l := range lines {
		all = append(all, tableLine{How: l.work.String(), Benchmark: l.benchmark, Provider: l.Provider, Unit: l.unit, Ranks: l.Ranks, Size: l.size,
			Rounds: len(l.Ratio.ratios), Flips: l.Ratio.flipped, Ours: number(l.Ours), Peer: number(l.Peer), Best: l.Best, Limit: number(l.Low),
			Ratio: l.Ratio.String(), OfLimit: l.OfLimit.String(), Behind: l.Ratio.median() > 1})
	}
	return all
}

// chartsOf draws each benchmark that has several sizes. Rows come in the order of sizes.
func chartsOf(rows []*row) (charts []chart, err error) {
	for i := 0; i < len(rows); {
		k := i + 1
		for k < len(rows) && rows[k].benchmark == rows[i].benchmark && rows[k].work == rows[i].work {
			k++
		}
		if k-i > 1 {
			svg, err := drawRows(rows[i:k])
			if err != nil {
				return nil, fmt.Errorf("drawing %s: %w", rows[i].benchmark, err)
			}
			charts = append(charts, chart{title(rows[i]), svg})
		}
		i = k
	}
	return charts, nil
}

func title(r *row) string {
	return strings.TrimSuffix(fmt.Sprintf("%s over %s, %d ranks, %v", r.benchmark, r.Provider, r.Ranks, r.work), ", ")
}

// drawRows draws the rows of one benchmark.
func drawRows(rows []*row) (template.HTML, error) {
	var all []curves.Curve
	for _, name := range namesOf(rows) {
		c := curves.Curve{Name: name, Strong: name == ours}
		for _, r := range rows {
			if v := r.typical(name); v > 0 {
				c.Points = append(c.Points, plotter.XY{X: float64(r.size), Y: v})
			}
		}
		all = append(all, c)
	}
	return curves.Draw(title(rows[0]), rows[0].unit, all)
}

// namesOf returns the systems of some rows: gopgas first.
func namesOf(rows []*row) []string {
	all := map[string]bool{}
	for _, r := range rows {
		for name := range r.systems {
			all[name] = name != ours
		}
	}
	names := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == ours:
			return -1
		case b == ours:
			return 1
		}
		return 0
	})
	return names
}
