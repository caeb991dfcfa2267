package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/examples/internal/plot"
	"github.com/gopgas/gopgas/runtime"
)

// report prints the clusters at rank 0, and draws them. Kind: collective.
func (o *options) report(ctx context.Context, team *runtime.Team, c *clustering, steps int, took time.Duration) error {
	spread := []float64{c.spread()}
	if err := collectives.Reduce(ctx, team, 0, collectives.Sum[float64](), spread, spread, collectives.Deterministic()); err != nil {
		return err
	}
	if team.Rank() != 0 {
		return nil
	}
	how := "no point changes its cluster any more"
	if moved := *c.moved(); moved > 0 {
		how = fmt.Sprintf("%d points still changed their cluster", moved)
	}
	fmt.Fprintf(o.out, "%d points of %d dimensions, %d ranks: %d steps in %.3f s, %s\n", o.points, o.dim, team.Size(), steps, took.Seconds(), how)
	for k, size := range c.sizes() {
		fmt.Fprintf(o.out, "%10d points around %.1f\n", size, c.centers[k*o.dim:][:o.dim])
	}
	fmt.Fprintf(o.out, "mean squared distance from them: %.5g\n", spread[0]/float64(o.points))
	if o.svg == "" {
		return nil
	}
	return o.draw(c)
}

// compare has rank 0 cluster all points alone; every rank compares its own result
// with that. Kind: collective.
func (o *options) compare(ctx context.Context, team *runtime.Team, c *clustering, steps int) error {
	centers, totals := make([]float64, len(c.centers)), make([]int64, len(c.totals))
	if team.Rank() == 0 {
		one, err := alone(ctx, c.data, steps)
		if err != nil {
			return err
		}
		centers, totals = one.centers, one.totals
	}
	if err := collectives.Broadcast(ctx, team, 0, centers); err != nil {
		return err
	}
	if err := collectives.Broadcast(ctx, team, 0, totals); err != nil {
		return err
	}
	if !slices.Equal(c.centers, centers) || !slices.Equal(c.totals, totals) {
		return fmt.Errorf("rank %d has centers %v of %v points, one rank alone has %v of %v",
			team.Rank(), c.centers, c.sizes(), centers, totals[len(c.sums()):][:len(c.sizes())])
	}
	if team.Rank() == 0 {
		fmt.Fprintf(o.out, "checked: %d ranks have the bits of one rank alone\n", team.Size())
	}
	return nil
}

// drawn bounds the number of points in the picture.
const drawn = 6000

// draw draws the first two dimensions, from all points evenly. Rank 0 makes the
// points of other ranks itself.
func (o *options) draw(c *clustering) error {
	p := &plot.Panel{Title: fmt.Sprintf("%d of %d points, %d clusters", min(drawn, o.points), o.points, o.clusters)}
	kinds := make([][]plot.Point, o.clusters)
	for i := range min(drawn, o.points) {
		at := i
		if o.points > drawn {
			at = int(int64(i) * int64(o.points) / drawn)
		}
		point := c.data.part(at, at+1)
		k := c.nearest(point)
		kinds[k] = append(kinds[k], plane(float64(point[0]), float64(point[min(1, o.dim-1)])))
	}
	for k, dots := range kinds {
		p.Dots(k, dots)
	}
	for k := range kinds {
		center := c.centers[k*o.dim:][:o.dim]
		p.Cross(plane(center[0], center[min(1, o.dim-1)]))
	}
	file, err := os.Create(o.svg)
	if err != nil {
		return err
	}
	return errors.Join(plot.Write(file, p), file.Close())
}

func plane(x, y float64) plot.Point { return plot.Point{X: x, Y: y} }
