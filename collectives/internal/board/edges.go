package board

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Edges are the edges of a directed graph of members that begin or end at this member. Several
// edges from one member to another match in the order of their lists. They share the queue between
// the two, one after another:
//
//	edges out  0: to 1 ─┐                   ┌─ 0: from 3
//	           1: to 3 ─┼── queue to 1 ──   ├─ 1: from 3
//	           2: to 1 ─┘   queue to 3 ──   └── queue from 3
//
// A call fills all queues while they have room and takes all pieces that have come,
// in turns. It waits when it can move nothing. No two members wait for each other, for any
// graph. A member in a later call has put all data of this call into its queues. In one call, a
// member that waits for room still takes pieces, so the peer gets room.
//
// The caller makes one call at a time. The functions that move data are in exchange.go and pieces.go.
type Edges struct {
	*Queues
	outs    []outgoing
	ins     []incoming
	loops   []loop
	out, in int // edges

	// The rest describes the call under way.
	seq, chain uint64      // number and chain of the call, in each line
	src, dst   table       // blocks of Send and Recv
	srcAt      Place       // of Send, where receivers read it in place
	whole      bool        // all edges out carry the whole of Send
	cached     bool        // caches hold all that members write in this call
	busy       int         // ends of queues that still have something to move
	ready      func() bool // advanceAll, for waits
	err        error       // that ended ready
}

// progress has the edges of a queue, in order, by their places among a member's blocks, and how
// far a call has moved them.
type progress struct {
	places []int
	edge   int // index in places of the current edge
	at     int // bytes of its block that were moved
}

// outgoing has the edges out to one member.
type outgoing struct {
	*sender
	progress
	leased uint64 // the last line by which this member leased its memory
}

// incoming has the edges in from one member.
type incoming struct {
	*receiver
	progress
}

// A loop leads from a member to itself.
type loop struct{ out, in int }

// ErrUnconnected: an edge of the graph has no queue.
var ErrUnconnected = errors.New("no queue leads along an edge; make those that Missing returns")

// Edges returns the edges of a graph: from the members in and to the members out,
// the nearest members first. Edge i in fills block slots[i], or block i if slots is
// nil.
func (q *Queues) Edges(in, out, slots []int) (*Edges, error) {
	e := &Edges{Queues: q, in: len(in), out: len(out)}
	e.ready = e.advanceAll
	var loopsIn, loopsOut []int
	for i, m := range in {
		place := i
		if slots != nil {
			place = slots[i]
		}
		if m == q.rank {
			loopsIn = append(loopsIn, place)
			continue
		}
		if err := e.addIn(m, place); err != nil {
			return nil, err
		}
	}
	for place, m := range out {
		if m == q.rank {
			loopsOut = append(loopsOut, place)
			continue
		}
		if err := e.addOut(m, place); err != nil {
			return nil, err
		}
	}
	if len(loopsIn) != len(loopsOut) {
		return nil, fmt.Errorf("board: member %d sends to itself %d times and receives from itself %d times", q.rank, len(loopsOut), len(loopsIn))
	}
	for i, out := range loopsOut {
		e.loops = append(e.loops, loop{out, loopsIn[i]})
	}
	slices.SortFunc(e.outs, func(x, y outgoing) int { return cmp.Compare(q.ahead(x.member), q.ahead(y.member)) })
	slices.SortFunc(e.ins, func(x, y incoming) int { return cmp.Compare(q.ahead(y.member), q.ahead(x.member)) })
	return e, nil
}

// ahead returns the distance to a member on the ring of members.
func (q *Queues) ahead(m int) int { return (m - q.rank + q.n) % q.n }

// addIn adds an edge in from member m, which fills the block at a place of Recv.
func (e *Edges) addIn(m, place int) error {
	for i := range e.ins {
		if in := &e.ins[i]; in.member == m {
			in.places = append(in.places, place)
			return nil
		}
	}
	if uint(m) >= uint(e.n) || e.from[m] == nil {
		return fmt.Errorf("from member %d: %w", m, ErrUnconnected)
	}
	e.ins = append(e.ins, incoming{receiver: e.from[m], progress: progress{places: []int{place}}})
	return nil
}

// addOut adds an edge out to member m, which carries the block at a place of Send.
func (e *Edges) addOut(m, place int) error {
	for i := range e.outs {
		if out := &e.outs[i]; out.member == m {
			out.places = append(out.places, place)
			return nil
		}
	}
	if uint(m) >= uint(e.n) || e.to[m] == nil {
		return fmt.Errorf("to member %d: %w", m, ErrUnconnected)
	}
	e.outs = append(e.outs, outgoing{sender: e.to[m], progress: progress{places: []int{place}}})
	return nil
}
