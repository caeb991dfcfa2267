// Package model is the part of the parameter server that knows no ranks: images of
// digits that the program draws itself, and a network that learns to read them.
package model

import (
	"math"
	"math/rand/v2"
)

// Images are squares of Side pixels, one of Classes digits each.
const (
	Side    = 20
	Pixels  = Side * Side
	Classes = 10
)

// font has a digit in each entry, of seven rows with five pixels.
var font = [Classes][7]string{
	{" ### ", "#   #", "#  ##", "# # #", "##  #", "#   #", " ### "},
	{"  #  ", " ##  ", "  #  ", "  #  ", "  #  ", "  #  ", " ### "},
	{" ### ", "#   #", "    #", "   # ", "  #  ", " #   ", "#####"},
	{"#####", "   # ", "  #  ", "   # ", "    #", "#   #", " ### "},
	{"   # ", "  ## ", " # # ", "#  # ", "#####", "   # ", "   # "},
	{"#####", "#    ", "#### ", "    #", "    #", "#   #", " ### "},
	{"  ## ", " #   ", "#    ", "#### ", "#   #", "#   #", " ### "},
	{"#####", "    #", "   # ", "  #  ", " #   ", " #   ", " #   "},
	{" ### ", "#   #", "#   #", " ### ", "#   #", "#   #", " ### "},
	{" ### ", "#   #", "#   #", " ####", "    #", "   # ", " ##  "},
}

// Digits draws images. Image i is a function of the seed and of i: a digit of the font, with noise
// on each pixel. It is turned by up to 14 degrees, scaled by up to a tenth, and moved by up to two
// pixels.
type Digits struct {
	seed uint64
	pcg  *rand.PCG
	rand *rand.Rand
}

// NewDigits returns the images of a seed. One goroutine uses them.
func NewDigits(seed uint64) *Digits {
	pcg := rand.NewPCG(seed, 0)
	return &Digits{seed, pcg, rand.New(pcg)}
}

// Draw draws image i into its Pixels and returns the digit.
func (d *Digits) Draw(i int, pixels []float32) (class int) {
	d.pcg.Seed(d.seed, uint64(i))
	class = d.rand.IntN(Classes)
	angle, scale := d.between(-0.25, 0.25), d.between(0.9, 1.1)
	dx, dy := d.between(-2, 2), d.between(-2, 2)
	sin, cos := math.Sincos(angle)
	const pitch = 2.4 // pixels of the image in one of the font
	for y := range Side {
		for x := range Side {
			u, v := (float64(x)-Side/2-dx)*scale/pitch, (float64(y)-Side/2-dy)*scale/pitch
			ink := glyph(class, cos*u+sin*v+2, cos*v-sin*u+3)
			pixels[y*Side+x] = float32(ink + 0.3*d.rand.NormFloat64())
		}
	}
	return class
}

func (d *Digits) between(from, to float64) float64 { return from + (to-from)*d.rand.Float64() }

// glyph returns the ink at a point of a digit, between the centers of four pixels.
func glyph(class int, x, y float64) (ink float64) {
	left, top := math.Floor(x), math.Floor(y)
	for row := range 2 {
		for col := range 2 {
			r, c := int(top)+row, int(left)+col
			if r < 0 || r >= 7 || c < 0 || c >= 5 || font[class][r][c] == ' ' {
				continue
			}
			ink += (1 - math.Abs(x-float64(c))) * (1 - math.Abs(y-float64(r)))
		}
	}
	return ink
}
