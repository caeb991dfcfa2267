package message

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrNeighbor: the graph has no such member, or an impossible edge.
var ErrNeighbor = errors.New("no such neighbor")

// Neighbors are the edges of a directed graph of members that begin or end at
// this member. They are sorted by the distance that an edge spans on the ring of
// members. So all members can follow theirs without waiting in a circle:
//
//	distance   0         1         2        ...
//	to         rank      rank+1    rank+2
//	from       rank      rank-1    rank-2
//
// Several edges from one member to another match in the order of their lists.
type Neighbors struct {
	hops      []hop
	ins, outs int
	most      int // largest number of edges from one member to another
}

// A hop is an edge in, an edge out, or one of each at the same distance.
type hop struct{ in, out edge }

// loops reports whether the hop leads from a member to itself: then both edges
// do.
func (h hop) loops(rank int) bool { return h.in.member == rank || h.out.member == rank }

// An edge leads to or from a member and has a place in its list. An edge without
// a member is none.
type edge struct{ member, place, distance int }

// NewNeighbors returns the edges of member rank of n, which receives from the
// members in and sends to the members out.
func NewNeighbors(rank, n int, in, out []int) (*Neighbors, error) {
	ins, loopsIn, err := edges(in, rank, n, func(m int) int { return turned(rank, m, n) })
	if err != nil {
		return nil, err
	}
	outs, loopsOut, err := edges(out, rank, n, func(m int) int { return turned(m, rank, n) })
	if err != nil {
		return nil, err
	}
	if loopsIn != loopsOut {
		return nil, fmt.Errorf("%w: member %d sends to itself %d times and receives from itself %d times: list it as often in both",
			ErrNeighbor, rank, loopsOut, loopsIn)
	}
	g := &Neighbors{ins: len(in), outs: len(out), most: max(repeats(ins, rank), repeats(outs, rank))}
	for len(ins) > 0 || len(outs) > 0 {
		step := hop{in: edge{member: none}, out: edge{member: none}}
		takesIn := len(ins) > 0 && (len(outs) == 0 || ins[0].distance <= outs[0].distance)
		takesOut := len(outs) > 0 && (len(ins) == 0 || outs[0].distance <= ins[0].distance)
		if takesIn {
			step.in, ins = ins[0], ins[1:]
		}
		if takesOut {
			step.out, outs = outs[0], outs[1:]
		}
		g.hops = append(g.hops, step)
	}
	return g, nil
}

// edges returns the edges of a list, the nearest first, and the number of loops
// among them.
func edges(members []int, rank, n int, distance func(member int) int) (all []edge, loops int, err error) {
	for place, m := range members {
		if m < 0 || m >= n {
			return nil, 0, fmt.Errorf("%w: member %d: members are 0 to %d", ErrNeighbor, m, n-1)
		}
		if m == rank {
			loops++
		}
		all = append(all, edge{member: m, place: place, distance: distance(m)})
	}
	slices.SortStableFunc(all, func(x, y edge) int { return cmp.Compare(x.distance, y.distance) })
	return all, loops, nil
}

// repeats returns the largest number of edges in a sorted list that have the same other
// member.
func repeats(list []edge, rank int) (most int) {
	run := 0
	for i, e := range list {
		if i > 0 && e.member != list[i-1].member {
			run = 0
		}
		if e.member == rank {
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}
