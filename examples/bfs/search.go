package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/rpipe/conveyor"
)

// none is the parent and the level of a vertex that no search has reached.
const none = -1

// A search is this rank's part of a tree.
type search struct {
	g       *graph
	records *conveyor.Conveyor[edge]
	parent  []int64 // of this rank's vertices
	level   []int64
	next    []int64 // this rank's vertices of the next level
}

// run searches from root, and returns the number of levels. Kind: collective.
func (s *search) run(ctx context.Context, root int64) (levels int64, err error) {
	s.parent, s.level, s.next = fresh(s.g.n()), fresh(s.g.n()), nil
	if s.g.owner(root) == s.g.world.Rank() {
		s.reach(root, root, 0)
	}
	for {
		more := []int64{int64(len(s.next))}
		if err := collectives.AllReduce(ctx, s.g.world, collectives.Sum[int64](), more, more); err != nil {
			return 0, err
		}
		if more[0] == 0 {
			return levels, nil
		}
		levels++
		if err := s.expand(ctx, levels); err != nil {
			return 0, fmt.Errorf("level %d: %w", levels, err)
		}
	}
}

// fresh returns the state of a search that has reached no vertex.
func fresh(n int64) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = none
	}
	return list
}

// reach makes from the parent of a vertex of this rank, unless it has one.
func (s *search) reach(v, from, level int64) {
	if i := v - s.g.first; s.parent[i] == none {
		s.parent[i], s.level[i] = from, level
		s.next = append(s.next, v)
	}
}

// expand finds the vertices of a level: the neighbors of the level before.
func (s *search) expand(ctx context.Context, level int64) error {
	frontier := s.next
	s.next = nil
	return s.phase(ctx, func(push func(to int64, record edge) error) error {
		for _, v := range frontier {
			for _, w := range s.g.neighbors(v) {
				if err := push(w, edge{From: w, To: v}); err != nil {
					return err
				}
			}
		}
		return nil
	}, func(r edge) error {
		s.reach(r.From, r.To, level)
		return nil
	})
}

// phase runs one phase of the conveyor: a goroutine pushes records to the ranks of vertices,
// and this one takes what arrives. Kind: collective.
func (s *search) phase(ctx context.Context, pushAll func(push func(to int64, record edge) error) error, take func(edge) error) error {
	pushed := make(chan error, 1)
	go func() {
		err := pushAll(func(to int64, record edge) error { return s.records.Push(ctx, s.g.owner(to), record) })
		if err == nil {
			err = s.records.EndPhase(ctx)
		}
		pushed <- err
	}()
	var failed error
	for r, err := range s.records.All(ctx) {
		if err != nil {
			return err
		}
		if failed == nil {
			failed = take(r.Value) // the phase goes on, so that no rank waits for this one
		}
	}
	if err := <-pushed; err != nil {
		return err
	}
	return failed
}

// reached counts this rank's vertices of the tree.
func (s *search) reached() (n int64) {
	for _, level := range s.level {
		if level != none {
			n++
		}
	}
	return n
}

// arcs counts the neighbors of this rank's vertices of the tree.
func (s *search) arcs() (n int64) {
	for i, level := range s.level {
		if level != none {
			n += int64(len(s.g.neighbors(s.g.first + int64(i))))
		}
	}
	return n
}
