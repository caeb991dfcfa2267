package main

import (
	"context"
	"math"

	"github.com/gopgas/gopgas/collectives"
)

// A clustering is Lloyd's algorithm at one rank: its part of the points, and
// centers that are the same at all ranks. The results for its own points are
// whole numbers, whose sums over all ranks are the same in any order. So all
// results are the same to the last bit, however the points are divided.
//
// (Lloyd, "Least Squares Quantization in PCM", 1982.)
type clustering struct {
	data    *dataset
	first   int     // number of the first point of this part
	points  []int32 // this part
	owner   []int32 // the center nearest to each of them
	centers []float64

	// totals holds the numbers that ranks add up. These are for each cluster the
	// sum of its points, then the clusters' sizes, then the number of points that
	// changed their cluster.
	totals []int64
}

// sums, sizes and moved are the parts of totals.
func (c *clustering) sums() []int64  { return c.totals[:c.data.clusters*c.data.dim] }
func (c *clustering) sizes() []int64 { return c.totals[c.data.clusters*c.data.dim:][:c.data.clusters] }
func (c *clustering) moved() *int64  { return &c.totals[len(c.totals)-1] }

// peers are the calls by which a part learns of the parts of other ranks.
type peers struct {
	add      func() error // adds the totals of all ranks to this one's
	farthest func(mine collectives.Loc[float64]) (collectives.Loc[float64], error)
}

// newClustering makes a part with the points [from, to).
func newClustering(d *dataset, from, to int) *clustering {
	c := &clustering{data: d, first: from, points: d.part(from, to), owner: make([]int32, to-from),
		centers: make([]float64, d.clusters*d.dim), totals: make([]int64, d.clusters*(d.dim+1)+1)}
	for i := range c.owner {
		c.owner[i] = -1
	}
	return c
}

// begin chooses the first centers: point 0, and then always the point that is
// farthest from the centers so far.
//
// (Gonzalez, "Clustering to Minimize the Maximum Intercluster Distance", 1985.)
func (c *clustering) begin(p peers) error {
	dim, next := c.data.dim, 0
	gap := make([]float64, len(c.owner)) // between each point and the centers so far
	for i := range gap {
		gap[i] = math.Inf(1)
	}
	for k := range c.data.clusters {
		center := c.centers[k*dim:][:dim]
		for j, x := range c.data.part(next, next+1) { // point next may belong to any rank
			center[j] = float64(x)
		}
		mine := collectives.Loc[float64]{Value: -1} // of a rank without points
		for i := range gap {
			gap[i] = min(gap[i], distance(c.points[i*dim:][:dim], center))
			if gap[i] > mine.Value {
				mine = collectives.Loc[float64]{Value: gap[i], Index: int64(c.first + i)}
			}
		}
		found, err := p.farthest(mine)
		if err != nil {
			return err
		}
		next = int(found.Index)
	}
	return nil
}

// step gives each point to the nearest center and moves the centers into the
// middle of their points. A cluster without points stays where it is.
func (c *clustering) step(p peers) error {
	clear(c.totals)
	dim, sums, sizes, moved := c.data.dim, c.sums(), c.sizes(), c.moved()
	for i := range c.owner {
		point := c.points[i*dim:][:dim]
		best := c.nearest(point)
		if best != c.owner[i] {
			c.owner[i] = best
			*moved++
		}
		sizes[best]++
		for j, x := range point {
			sums[int(best)*dim+j] += int64(x)
		}
	}
	if err := p.add(); err != nil {
		return err
	}
	for i, size := range sizes {
		for j := range dim {
			if size > 0 {
				c.centers[i*dim+j] = float64(sums[i*dim+j]) / float64(size)
			}
		}
	}
	return nil
}

// nearest returns the center nearest to a point, the first of several.
func (c *clustering) nearest(point []int32) int32 {
	dim, best, least := len(point), 0, math.Inf(1)
	for k := range c.data.clusters {
		if d := distance(point, c.centers[k*dim:][:dim]); d < least {
			best, least = k, d
		}
	}
	return int32(best)
}

// distance returns Euclid's distance, squared.
func distance(point []int32, center []float64) float64 {
	sum := 0.0
	for j, x := range point {
		d := float64(x) - center[j]
		sum += d * d
	}
	return sum
}

// spread returns the sum of squared distances of this part's points from their
// centers.
func (c *clustering) spread() float64 {
	sum, dim := 0.0, c.data.dim
	for i, k := range c.owner {
		sum += distance(c.points[i*dim:][:dim], c.centers[int(k)*dim:][:dim])
	}
	return sum
}

// alone clusters all points in one part, in as many steps.
func alone(ctx context.Context, d *dataset, steps int) (*clustering, error) {
	c := newClustering(d, 0, d.points)
	p := peers{
		add:      ctx.Err,
		farthest: func(mine collectives.Loc[float64]) (collectives.Loc[float64], error) { return mine, ctx.Err() },
	}
	err := c.begin(p)
	for range steps {
		if err == nil {
			err = c.step(p)
		}
	}
	return c, err
}
