// Bfs searches a graph breadth-first, as Graph500 does. The graph is spread over all
// ranks. It prints the number of edges of the searched part a second (TEPS).
//
//	grun -n 4 ./examples/bfs [-scale 12] [-edges 16] [-roots 4] [-seed 1]
//
// The graph has 2^scale vertices and edges * 2^scale undirected edges. Each rank has a
// block of the vertices, with their neighbors. A search goes level by level:
//
//	rank of v                                  rank of w
//	v is in the frontier:
//	  for each neighbor w   -- Push(w, v) -->  w has no parent yet: v becomes its parent,
//	EndPhase                                   and w joins the next frontier
//
// The records travel by a conveyor. Its phases divide the levels: no rank waits for a
// barrier to know that it has all records of a level.
//
// All ranks check each tree by Graph500's rules: it is rooted and has no cycle; its edges are edges
// of the graph; each edge joins levels that differ by at most one; it spans the root's component.
// For graphs of up to 2^16 vertices rank 0 also searches alone, and compares the levels.
//
// (Murphy, Wheeler, Barrett, Ang, "Introducing the Graph 500", 2010; Chakrabarti, Zhan,
// Faloutsos, "R-MAT: A Recursive Model for Graph Mining", 2004.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	scale, edges, roots int
	seed                uint64
	out                 io.Writer
}

const (
	maxScale = 32
	maxEdges = 1 << 10

	// sequentialScale bounds the graphs that rank 0 also searches alone.
	sequentialScale = 16
)

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.scale, "scale", 12, "the graph has two to this many vertices")
	flag.IntVar(&o.edges, "edges", 16, "edges for each vertex")
	flag.IntVar(&o.roots, "roots", 4, "searches")
	flag.Uint64Var(&o.seed, "seed", 1, "of the graph and of the roots")
	flag.Parse()
	if flag.NArg() > 0 || o.scale < 1 || o.scale > maxScale || o.edges < 1 || o.edges > maxEdges || o.roots < 1 {
		fmt.Fprintf(os.Stderr, "usage: grun -n N ./examples/bfs [flags]; -scale from 1 to %d, -edges from 1 to %d\n", maxScale, maxEdges)
		flag.PrintDefaults()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	edges, err := conveyor.Open[edge](ctx, world, conveyor.WithName("edges"))
	if err != nil {
		return err
	}
	g, err := build(ctx, world, edges, &o)
	if err = errors.Join(err, edges.Close(ctx)); err != nil {
		return err
	}
	records, err := conveyor.Open[edge](ctx, world, conveyor.WithName("records"))
	if err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Fprintf(o.out, "2^%d vertices, %d edges, %d ranks\n", o.scale, o.edges<<o.scale, world.Size())
	}
	s := &search{g: g, records: records}
	for i := range o.roots {
		root, err := g.root(ctx, o.seed, i)
		if err == nil {
			err = o.search(ctx, s, root)
		}
		if err != nil {
			return fmt.Errorf("search %d: %w", i, err)
		}
	}
	return records.Close(ctx)
}

// search searches from a root, checks the tree, and prints a line.
func (o *options) search(ctx context.Context, s *search, root int64) error {
	world := s.g.world
	if err := world.Barrier(ctx); err != nil {
		return err
	}
	began := time.Now()
	levels, err := s.run(ctx, root)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	if err := s.verify(ctx, root); err != nil {
		return err
	}
	if o.scale <= sequentialScale {
		if err := s.compare(ctx, root, o); err != nil {
			return err
		}
	}
	sum := []int64{s.reached(), s.arcs()}
	if err := collectives.AllReduce(ctx, world, collectives.Sum[int64](), sum, sum); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Fprintf(o.out, "root %d: %d vertices in %d levels, %.2f million TEPS, verified\n",
			root, sum[0], levels, float64(sum[1]/2)/seconds/1e6)
	}
	return nil
}
