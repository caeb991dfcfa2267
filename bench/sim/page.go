package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/gopgas/gopgas/bench/curves"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"join": strings.Join,
}).Parse(pageText))

// A section is one collective with its charts.
type section struct {
	Collective string
	Charts     []chart
}

// A chart is a group with its drawing.
type chart struct {
	*group
	SVG template.HTML
}

// writePage writes the page of curves. It needs no network.
func writePage(path string, c *constants, starts []start, groups []group) error {
	var sections []section
	for i := range groups {
		g := &groups[i]
		if len(sections) == 0 || sections[len(sections)-1].Collective != g.Collective {
			sections = append(sections, section{Collective: g.Collective})
		}
		svg, err := drawGroup(g)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", g.Collective, err)
		}
		last := &sections[len(sections)-1]
		last.Charts = append(last.Charts, chart{g, svg})
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("%w; name another file with -page", err)
	}
	err = pageTemplate.Execute(f, struct {
		Constants *constants
		Starts    []start
		Sections  []section
	}{c, starts, sections})
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// drawGroup draws a group's curves.
func drawGroup(g *group) (template.HTML, error) {
	all := make([]curves.Curve, len(g.Curves))
	for i := range g.Curves {
		c := &g.Curves[i]
		all[i] = curves.Curve{Name: c.Algorithm, Points: make(plotter.XYs, len(c.Sizes))}
		for k := range c.Sizes {
			all[i].Points[k] = plotter.XY{X: float64(c.Sizes[k]), Y: max(float64(c.Times[k])/1000, leastMicros)}
		}
	}
	return curves.Draw(fmt.Sprintf("%s, %d ranks, %d on a host", g.Collective, g.Ranks, g.PerHost), "microseconds", all)
}

// leastMicros stands for no time, which a logarithmic axis cannot show.
const leastMicros = 0.001
