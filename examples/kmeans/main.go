// Kmeans finds clusters in points that are divided among the ranks, by Lloyd's
// algorithm.
//
//	grun -n 4 ./examples/kmeans [-points 200000] [-clusters 8] [-dim 2] [-svg FILE]
//
// In each step every rank gives its points to the nearest center, and adds up the
// points of each cluster. One AllReduce adds up the ranks' sums, from which all
// compute the same centers. It ends when no point has changed its cluster.
//
//	rank 0: points -> nearest center -> sums, sizes --+
//	rank 1: points -> nearest center -> sums, sizes --+--> AllReduce(Sum) --> centers of all ranks
//	        ...                                       |
//
// The first centers are far from each other: AllReduce(MaxLoc) names the
// farthest point, which each rank then makes for itself.
//
//	points.go  the data, which any rank can make any part of
//	lloyd.go   the algorithm, which knows of other ranks by two functions
//	report.go  what is printed, drawn and checked
//
// Coordinates are whole numbers, and so sums are exact. To check the result, rank
// 0 clusters all points alone, and every rank compares the bits.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/examples/internal/progress"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	points, clusters, dim, steps int

	seed  uint64
	check bool
	svg   string
	out   io.Writer // results
	log   io.Writer // progress
}

const help = `usage: grun -n N ./examples/kmeans [flags]

Divides random points among N ranks and finds the clusters that they form. The
result has the same bits for every N.

  grun -n 4 ./examples/kmeans                                  the defaults, checked
  grun -n 4 ./examples/kmeans -svg clusters.svg                a picture
  grun -n 4 --provider tcp ./examples/kmeans                   over sockets
  grun -n 4 -x GRUN_EXPLAIN=collectives ./examples/kmeans      which algorithms do the calls
  grun -n 8 ./examples/kmeans -points 2000000 -clusters 50     more to do

`

func main() {
	o := options{out: os.Stdout, log: os.Stderr}
	flag.IntVar(&o.points, "points", 200_000, "how many points, of all ranks together")
	flag.IntVar(&o.clusters, "clusters", 8, "how many clusters to make and to look for")
	flag.IntVar(&o.dim, "dim", 2, "dimensions of a point")
	flag.IntVar(&o.steps, "steps", 300, "end after so many steps even if points still change clusters")
	flag.Uint64Var(&o.seed, "seed", 1, "other points")
	flag.BoolVar(&o.check, "check", true, "compare with one rank's result, bit by bit; takes as long again as one rank does")
	flag.StringVar(&o.svg, "svg", "", "draw some of the points and the centers into this `file`")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), help)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || o.clusters < 1 || o.points < o.clusters || o.dim < 1 || o.steps < 1 {
		fmt.Fprintln(os.Stderr, "kmeans: one cluster, dimension and step at least, and as many points as clusters")
		flag.Usage()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	data := newDataset(o.points, o.dim, o.clusters, o.seed)
	from, to := share(o.points, world.Rank(), world.Size())
	c := newClustering(data, from, to)
	started := time.Now()
	steps, err := o.cluster(ctx, world, c)
	if err != nil {
		return err
	}
	if err := o.report(ctx, world, c, steps, time.Since(started)); err != nil || !o.check {
		return err
	}
	return o.compare(ctx, world, c, steps)
}

// cluster makes steps until no point moves, and returns their number. All ranks
// make as many.
func (o *options) cluster(ctx context.Context, team *runtime.Team, c *clustering) (int, error) {
	// All steps make the same call on the same slices: it is checked once.
	addUp, err := collectives.Plan(ctx, team, collectives.AllReduceCall(collectives.Sum[int64](), c.totals, c.totals))
	if err != nil {
		return 0, err
	}
	p := peers{
		add: func() error { return addUp.Run(ctx) },
		farthest: func(mine collectives.Loc[float64]) (collectives.Loc[float64], error) {
			all := []collectives.Loc[float64]{mine}
			err := collectives.AllReduce(ctx, team, collectives.MaxLoc[float64](), all, all)
			return all[0], err
		},
	}
	if err := c.begin(p); err != nil {
		return 0, err
	}
	progress := progress.New(o.log, "kmeans", team.Rank() == 0)
	for step := 1; ; step++ {
		if err := c.step(p); err != nil {
			return 0, err
		}
		progress.Tell("step %d: %d points changed their cluster", step, *c.moved())
		if *c.moved() == 0 || step == o.steps {
			return step, addUp.Free(ctx)
		}
	}
}
