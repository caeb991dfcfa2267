// Package curves draws curves for pages that need no network: both axes logarithmic, as an SVG
// element.
package curves

import (
	"fmt"
	"html/template"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Curve has a name in the legend and points, all of them above zero.
type Curve struct {
	Name   string
	Points plotter.XYs
	Strong bool // drawn with a wider line
}

// Draw draws curves over bytes. Unit names the other axis. Kind: local.
func Draw(title, unit string, curves []Curve) (template.HTML, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = "bytes", unit
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		if len(c.Points) == 0 {
			return "", fmt.Errorf("curve %q of %s has no points", c.Name, title)
		}
		line, marks, err := plotter.NewLinePoints(c.Points)
		if err != nil {
			return "", err
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/len(plotutil.DefaultColors))
		if c.Strong {
			line.Width *= 2
		}
		marks.Color, marks.Shape = line.Color, plotutil.Shape(i)
		p.Add(line, marks)
		p.Legend.Add(c.Name, line, marks)
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
