// Package plot draws small pictures as SVG: points, crosses and lines in panels
// side by side.
package plot

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
)

// Sizes in pixels.
const (
	side   = 480 // of a panel's square
	margin = 70  // around it, where labels stand
)

// colors has a color for each of this many kinds; further kinds use them again.
var colors = [...]string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb5566", "#999933", "#44aa99", "#882255"}

// A Panel is one picture. Its axes span its marks.
type Panel struct {
	Title, X, Y string
	marks       []mark
}

// A mark is an item to draw.
type mark struct {
	at   []Point
	kind int
	draw func(w io.Writer, at []Point, color string)
}

// A Point is a place in a panel, in the units of its axes.
type Point struct{ X, Y float64 }

// Dots draws points in the color of a kind.
func (p *Panel) Dots(kind int, at []Point) { p.marks = append(p.marks, mark{at, kind, dots}) }

// Cross marks a place.
func (p *Panel) Cross(at Point) { p.marks = append(p.marks, mark{[]Point{at}, 0, cross}) }

// Line joins points.
func (p *Panel) Line(kind int, at []Point) { p.marks = append(p.marks, mark{at, kind, line}) }

// dots draws a dot at each place.
func dots(w io.Writer, at []Point, color string) {
	fmt.Fprintf(w, "<g fill=%q fill-opacity=\"0.6\">\n", color)
	for _, p := range at {
		fmt.Fprintf(w, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"1.5\"/>\n", p.X, p.Y)
	}
	fmt.Fprintln(w, "</g>")
}

// cross draws a cross at each place.
func cross(w io.Writer, at []Point, _ string) {
	for _, p := range at {
		fmt.Fprintf(w, "<path d=\"M%.1f %.1fh14m-7 -7v14\" stroke=\"black\" stroke-width=\"3\"/>\n", p.X-7, p.Y)
	}
}

// line draws a line through all places.
func line(w io.Writer, at []Point, color string) {
	fmt.Fprintf(w, "<polyline fill=\"none\" stroke=%q stroke-width=\"1.5\" points=\"", color)
	for _, p := range at {
		fmt.Fprintf(w, "%.1f,%.1f ", p.X, p.Y)
	}
	fmt.Fprintln(w, `"/>`)
}

// Write writes panels as one SVG document.
func Write(w io.Writer, panels ...*Panel) error {
	b := bufio.NewWriter(w)
	width, height := len(panels)*(side+2*margin), side+2*margin
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, height)
	fmt.Fprintf(b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height)
	for i, p := range panels {
		fmt.Fprintf(b, "<g transform=\"translate(%d %d)\">\n", i*(side+2*margin)+margin, margin)
		p.write(b)
		fmt.Fprintln(b, "</g>")
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

// write draws the panel as SVG: marks within a frame, and the ends of both axes.
func (p *Panel) write(w io.Writer) {
	lo, hi := p.span()
	fmt.Fprintf(w, "<rect width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888888\"/>\n", side, side)
	for _, m := range p.marks {
		m.draw(w, project(m.at, lo, hi), colors[m.kind%len(colors)])
	}
	text := func(x, y int, anchor, s string) {
		fmt.Fprintf(w, "<text x=\"%d\" y=\"%d\" text-anchor=%q>%s</text>\n", x, y, anchor, html.EscapeString(s))
	}
	text(side/2, -16, "middle", p.Title)
	text(0, -4, "start", p.Y)
	text(side/2, side+32, "middle", p.X)
	text(0, side+16, "start", fmt.Sprintf("%.3g", lo.X))
	text(side, side+16, "end", fmt.Sprintf("%.3g", hi.X))
	text(-4, side, "end", fmt.Sprintf("%.3g", lo.Y))
	text(-4, 12, "end", fmt.Sprintf("%.3g", hi.Y))
}

// span returns the corners of all that can be drawn.
func (p *Panel) span() (lo, hi Point) {
	lo, hi = Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	for _, m := range p.marks {
		for _, at := range m.at {
			lo, hi = Point{min(lo.X, at.X), min(lo.Y, at.Y)}, Point{max(hi.X, at.X), max(hi.Y, at.Y)}
		}
	}
	if lo.X > hi.X { // the panel is empty
		return Point{}, Point{1, 1}
	}
	return lo, hi
}

// project turns axes' units into pixels, in which y grows downward.
func project(at []Point, lo, hi Point) []Point {
	scale := func(v, lo, hi float64) float64 {
		if lo == hi {
			return side / 2
		}
		return (v - lo) / (hi - lo) * side
	}
	out := make([]Point, len(at))
	for i, p := range at {
		out[i] = Point{scale(p.X, lo.X, hi.X), side - scale(p.Y, lo.Y, hi.Y)}
	}
	return out
}
