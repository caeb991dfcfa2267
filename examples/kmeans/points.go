package main

import (
	"math"
	"math/rand/v2"
)

// The data: clusters of points around centers, all in whole units. Point i is a
// function of the seed and of i, so that every rank can make any of them.
//
//	cluster  uniform among k
//	point    its cluster's center, plus a normal deviation in each dimension
//
// Centers are uniform in a cube, each the farthest from the earlier ones of a few
// that were drawn. The numbers are those of PCG, begun anew with (seed, i) for
// each point.
const (
	halfCube   = 1_000_000
	deviation  = 130_000
	candidates = 20
)

// A dataset describes all points of all ranks; none of them is stored.
type dataset struct {
	points   int
	dim      int
	clusters int
	seed     uint64
	centers  []int32
}

// newDataset draws the true centers, each the one of several candidates that is farthest from the
// others. All ranks draw the same ones.
func newDataset(points, dim, clusters int, seed uint64) *dataset {
	d := &dataset{points: points, dim: dim, clusters: clusters, seed: seed}
	numbers := rand.New(rand.NewPCG(seed, math.MaxUint64))
	for range clusters {
		var best []int32
		widest := -1.0
		for range candidates {
			drawn := make([]int32, dim)
			for j := range drawn {
				drawn[j] = int32(numbers.IntN(2*halfCube+1) - halfCube)
			}
			if gap := d.gap(drawn); gap > widest {
				best, widest = drawn, gap
			}
		}
		d.centers = append(d.centers, best...)
	}
	return d
}

// gap is the squared distance of a point from the nearest center so far.
func (d *dataset) gap(point []int32) float64 {
	least := math.Inf(1)
	for c := 0; c < len(d.centers); c += d.dim {
		sum := 0.0
		for j, x := range d.centers[c:][:d.dim] {
			sum += float64(x-point[j]) * float64(x-point[j])
		}
		least = min(least, sum)
	}
	return least
}

// part returns the points [from, to), one after another.
func (d *dataset) part(from, to int) []int32 {
	out := make([]int32, 0, (to-from)*d.dim)
	var pcg rand.PCG
	numbers := rand.New(&pcg)
	for i := from; i < to; i++ {
		pcg.Seed(d.seed, uint64(i))
		c := numbers.IntN(d.clusters)
		for _, center := range d.centers[c*d.dim:][:d.dim] {
			out = append(out, center+int32(math.Round(deviation*numbers.NormFloat64())))
		}
	}
	return out
}

// share returns the range of points that a rank has.
func share(points, rank, size int) (from, to int) {
	return points/size*rank + min(rank, points%size), points/size*(rank+1) + min(rank+1, points%size)
}
