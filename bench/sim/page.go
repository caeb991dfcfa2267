package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
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

// drawGroup draws a group's curves, both axes logarithmic.
func drawGroup(g *group) (template.HTML, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, %d ranks, %d on a host", g.Collective, g.Ranks, g.PerHost)
	p.X.Label.Text, p.Y.Label.Text = "bytes", "microseconds"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i := range g.Curves {
		c := &g.Curves[i]
		points := make(plotter.XYs, len(c.Sizes))
		for k := range points {
			points[k] = plotter.XY{X: float64(c.Sizes[k]), Y: max(float64(c.Times[k])/1000, leastMicros)}
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return "", err
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/len(plotutil.DefaultColors))
		marks.Color, marks.Shape = line.Color, plotutil.Shape(i)
		p.Add(line, marks)
		p.Legend.Add(c.Algorithm, line, marks)
	}
	canvas := vgsvg.New(18*vg.Centimeter, 12*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var out strings.Builder
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", err
	}
	_, svg, _ := strings.Cut(out.String(), "<svg") // without the header of a file
	return template.HTML("<svg" + svg), nil        //nolint:gosec // the library escapes names
}

// leastMicros stands for no time, which a logarithmic axis cannot show.
const leastMicros = 0.001
