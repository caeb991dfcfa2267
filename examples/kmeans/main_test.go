package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// jobs are the sizes that every test runs at.
var jobs = []int{1, 2, 3, 4, 8}

func local(n int, body runtime.Body, opts ...runtime.Option) error {
	return testjob.RunLocal(context.Background(), n, body, opts...)
}

func small(out io.Writer) options {
	return options{points: 2000, clusters: 5, dim: 3, steps: 100, seed: 1, check: true, out: out, log: io.Discard}
}

func TestResultEqualsThatOfOneRankAlone(t *testing.T) {
	for name, opts := range map[string][]runtime.Option{
		"mapped": {runtime.WithProvider("loop")},
		"queued": {runtime.WithProvider("loop"), runtime.WithFMAMax(0)},
		"tcp":    {runtime.WithProvider("tcp")},
	} {
		for _, n := range jobs {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				var out strings.Builder // rank 0 alone prints
				o := small(&out)
				require.NoError(t, local(n, o.run, opts...))
				require.Contains(t, out.String(), fmt.Sprintf("2000 points of 3 dimensions, %d ranks", n))
				require.Contains(t, out.String(), "no point changes its cluster any more")
				require.Contains(t, out.String(), fmt.Sprintf("checked: %d ranks have the bits of one rank alone", n))
				require.Equal(t, 5, strings.Count(out.String(), "points around"))
			})
		}
	}
}

func TestMoreRanksThanPoints(t *testing.T) {
	var out strings.Builder
	o := small(&out)
	o.points, o.clusters = 3, 3
	require.NoError(t, local(8, o.run))
	require.Equal(t, 3, strings.Count(out.String(), " 1 points around"), "each point is a cluster")
	require.Contains(t, out.String(), "distance from them: 0\n")
}

func TestClusteringFindsTheClustersOfThePoints(t *testing.T) {
	d := newDataset(5000, 2, 6, 1)
	c, err := alone(t.Context(), d, 100)
	require.NoError(t, err)
	require.Zero(t, *c.moved())
	total := int64(0)
	for k, size := range c.sizes() {
		center := c.centers[k*2:][:2]
		at := []int32{int32(center[0]), int32(center[1])}
		require.Lessf(t, math.Sqrt(d.gap(at)), deviation/4., "no cluster was made at %v", center)
		require.InDelta(t, 5000/6, size, 200)
		total += size
	}
	require.EqualValues(t, 5000, total)
}

func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := alone(ctx, newDataset(50, 2, 3, 1), 5)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCheckFindsAWrongBit(t *testing.T) {
	for _, n := range jobs {
		o := small(io.Discard)
		err := local(n, func(ctx context.Context, job *runtime.Job) error {
			world := job.World()
			from, to := share(o.points, world.Rank(), n)
			c := newClustering(newDataset(o.points, o.dim, o.clusters, o.seed), from, to)
			steps, err := o.cluster(ctx, world, c)
			if err != nil {
				return err
			}
			if world.Rank() == n-1 {
				c.centers[7] = math.Nextafter(c.centers[7], 0)
			}
			return o.compare(ctx, world, c, steps)
		})
		require.ErrorContains(t, err, fmt.Sprintf("rank %d has centers", n-1))
	}
}

func TestStepsAreBounded(t *testing.T) {
	var out strings.Builder
	o := small(&out)
	o.steps = 1
	require.NoError(t, local(3, o.run))
	require.Contains(t, out.String(), "1 steps")
	require.Contains(t, out.String(), "2000 points still changed their cluster")
	require.Contains(t, out.String(), "checked")
}

func TestCenterWithoutPointsStaysWhereItIs(t *testing.T) {
	c := newClustering(newDataset(100, 2, 2, 1), 0, 100)
	far := []float64{1e9, -1e9}
	copy(c.centers[2:], far)
	require.NoError(t, c.step(peers{add: func() error { return nil }}))
	require.Equal(t, far, c.centers[2:])
	require.Equal(t, []int64{100, 0}, c.sizes())
}

func TestPartsTogetherAreAllPoints(t *testing.T) {
	d := newDataset(1001, 3, 4, 7)
	whole := d.part(0, 1001)
	for _, n := range jobs {
		var parts []int32
		end := 0
		for rank := range n {
			from, to := share(1001, rank, n)
			require.Equal(t, end, from)
			parts, end = append(parts, d.part(from, to)...), to
		}
		require.Equal(t, whole, parts)
	}
	require.NotEqual(t, whole, newDataset(1001, 3, 4, 8).part(0, 1001), "another seed")
}

func TestPictureHasPointsAndCenters(t *testing.T) {
	for _, points := range []int{500, 2 * drawn} {
		o := small(io.Discard)
		o.points, o.dim, o.svg = points, 1, filepath.Join(t.TempDir(), "clusters.svg")
		require.NoError(t, local(2, o.run))
		svg, err := os.ReadFile(o.svg)
		require.NoError(t, err)
		require.Equal(t, min(points, drawn), strings.Count(string(svg), "<circle"))
		require.Equal(t, o.clusters, strings.Count(string(svg), "<path"))
	}
	o := small(io.Discard)
	o.svg = filepath.Join(t.TempDir(), "there is no folder", "clusters.svg")
	require.ErrorIs(t, local(2, o.run), os.ErrNotExist)
}
