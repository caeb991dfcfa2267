package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/window"
)

var errTree = errors.New("wrong tree")

// verify checks the tree by Graph500's rules. All ranks get an error if one finds a fault.
// Kind: collective.
func (s *search) verify(ctx context.Context, root int64) error {
	levels, err := window.AllocateV[int64](ctx, s.g.world, int(s.g.n()), window.WithName("levels"))
	if err != nil {
		return err
	}
	copy(levels.Local(), s.level)
	if err := levels.Fence(ctx); err != nil {
		return err
	}
	found := s.rooted(root)
	if found == nil {
		found = s.joins(ctx, levels, root)
	}
	if found != nil && !errors.Is(found, errTree) {
		return found
	}
	return errors.Join(found, s.agree(ctx, found == nil), levels.Free(ctx))
}

// rooted checks that the root is its own parent, at level 0, and that each other vertex's parent is a
// neighbor. So the tree's edges are the graph's.
func (s *search) rooted(root int64) error {
	for i, parent := range s.parent {
		v := s.g.first + int64(i)
		switch {
		case v == root && (parent != root || s.level[i] != 0):
			return fmt.Errorf("%w: the root %d has parent %d and level %d", errTree, v, parent, s.level[i])
		case v == root || parent == none && s.level[i] == none:
			continue
		}
		if _, ok := slices.BinarySearch(s.g.neighbors(v), parent); !ok {
			return fmt.Errorf("%w: vertex %d has no edge to its parent %d", errTree, v, parent)
		}
	}
	return nil
}

// joins checks the levels of both ends of each edge. It gets the levels of one rank after the other, and
// checks the edges that lead there: one get for each rank instead of one for each edge.
func (s *search) joins(ctx context.Context, levels *window.Window[int64], root int64) error {
	block := make([]int64, s.g.block)
	for turn := range s.g.world.Size() {
		owner := (s.g.world.Rank() + turn) % s.g.world.Size()
		far := block[:levels.Len(owner)]
		if err := levels.Get(ctx, owner, 0, far); err != nil {
			return err
		}
		first := int64(owner) * s.g.block
		for i := range s.level {
			if err := s.joinsBlock(i, first, far, root); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinsBlock checks the edges from vertex i of this rank to the vertices from first on, whose levels are
// far. Both ends of an edge are in the tree or both not, and their levels differ by at most one. So
// the tree spans the component of the root. The parent is one level before, so the tree has no cycle.
func (s *search) joinsBlock(i int, first int64, far []int64, root int64) error {
	v, level, end := s.g.first+int64(i), s.level[i], first+int64(len(far))
	neighbors := s.g.neighbors(v)
	at, _ := slices.BinarySearch(neighbors, first)
	for _, w := range neighbors[at:] {
		if w >= end {
			break
		}
		other := far[w-first]
		if (other == none) != (level == none) || other-level > 1 || level-other > 1 {
			return fmt.Errorf("%w: the edge from %d to %d joins levels %d and %d", errTree, v, w, level, other)
		}
		if w == s.parent[i] && v != root && other != level-1 {
			return fmt.Errorf("%w: vertex %d of level %d has a parent of level %d", errTree, v, level, other)
		}
	}
	return nil
}

// agree returns an error at all ranks if one has found a fault.
func (s *search) agree(ctx context.Context, good bool) error {
	bad := []int64{0}
	if !good {
		bad[0] = 1
	}
	if err := collectives.AllReduce(ctx, s.g.world, collectives.Sum[int64](), bad, bad); err != nil {
		return err
	}
	if bad[0] > 0 {
		return fmt.Errorf("%w: %d ranks found a fault", errTree, bad[0])
	}
	return nil
}

// compare has rank 0 search the whole graph alone, and compares the levels of all vertices.
// Kind: collective.
func (s *search) compare(ctx context.Context, root int64, o *options) error {
	size := s.g.world.Size()
	var all []int64
	blocks := collectives.Blocks{Counts: make([]int, size)}
	for r := range size {
		blocks.Counts[r] = int(min(s.g.block, max(0, s.g.vertices-int64(r)*s.g.block)))
	}
	if s.g.world.Rank() == 0 {
		all = make([]int64, s.g.vertices)
	}
	if err := collectives.GatherV(ctx, s.g.world, 0, s.level, all, blocks); err != nil {
		return err
	}
	good := true
	if s.g.world.Rank() == 0 {
		good = slices.Equal(all, sequential(s.g, root, o))
	}
	return s.agree(ctx, good)
}

// sequential draws the whole graph and returns the level of each vertex.
func sequential(g *graph, root int64, o *options) []int64 {
	neighbors := make([][]int64, g.vertices)
	_ = g.draw(o, 0, 1, func(e edge) error { // add never fails
		neighbors[e.From] = append(neighbors[e.From], e.To)
		neighbors[e.To] = append(neighbors[e.To], e.From)
		return nil
	})
	levels := fresh(g.vertices)
	levels[root] = 0
	for queue := []int64{root}; len(queue) > 0; queue = queue[1:] {
		for _, w := range neighbors[queue[0]] {
			if levels[w] == none {
				levels[w] = levels[queue[0]] + 1
				queue = append(queue, w)
			}
		}
	}
	return levels
}
