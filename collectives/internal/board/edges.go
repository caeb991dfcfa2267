package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/internal/wait"
)

// Edges are the edges of a directed graph of members that begin or end at one of
// them. Several from one member to another match in the order of their lists, and
// go one after the other through the one queue between the two:
//
//	edges out  0: to 1 ─┐                   ┌─ 0: from 3
//	           1: to 3 ─┼── queue to 1 ──   ├─ 1: from 3
//	           2: to 1 ─┘   queue to 3 ──   └── queue from 3
//
// A call puts what there is room for into all queues and takes what has come from
// all, piece by piece in turns, and waits when nothing can be moved. So no member
// waits for one that waits for it, whatever the graph: a member further on has left
// behind all that the others need, and of those in one call an end that waits for
// room has the other end's next line before it.
type Edges struct {
	*Queues
	outs      []outgoing
	ins       []incoming
	loops     []loop
	out, in   int // edges
	ready     func() bool
	err       error // that ended ready
	busy      int   // queues' ends that have something left to do
	seq       uint64
	signature uint64
	whole     bool // all edges out carry all of what is sent
	src, dst  table
	srcAt     Place
}

// The edges of a queue, in order, by their places among a member's blocks, and how
// far a call is.
type progress struct {
	places []int
	edge   int // of places, that is under way
	at     int // bytes of its block that were moved
}

type outgoing struct {
	*sender
	progress
	lent uint64 // the last line after which the other reads this member's memory
}

type incoming struct {
	*receiver
	progress
}

// A loop leads from a member to itself.
type loop struct{ out, in int }

// ErrUnconnected: a graph's edge has no queue.
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

// ahead returns how far a member is on the ring of members.
func (q *Queues) ahead(m int) int { return (m - q.rank + q.n) % q.n }

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

// AllGather sends a.Send along every edge out, and fills a block of a.Recv from
// every edge in. Lengths may differ; both ends of an edge know its.
func (e *Edges) AllGather(ctx context.Context, seq, signature uint64, a *Args) error {
	e.whole, e.src = true, table{}
	e.src.buf = a.Send
	return e.exchange(ctx, seq, signature, a)
}

// AllToAll sends a block of a.Send along every edge out, and fills a block of
// a.Recv from every edge in. Lengths may differ; both ends of an edge know its.
func (e *Edges) AllToAll(ctx context.Context, seq, signature uint64, a *Args) error {
	e.whole, e.src = false, a.sendTable(len(a.Send)/max(e.out, 1))
	return e.exchange(ctx, seq, signature, a)
}

func (e *Edges) exchange(ctx context.Context, seq, signature uint64, a *Args) error {
	if e.failure != nil {
		return e.failure
	}
	e.seq, e.signature = seq, signature
	e.dst, e.srcAt = a.recvTable(len(a.Recv)/max(e.in, 1)), a.SendAt
	err := e.move(ctx)
	e.src.buf, e.dst.buf = nil, nil // the caller's
	if err != nil {
		e.failure = err
	}
	return err
}

// move moves everything.
func (e *Edges) move(ctx context.Context) error {
	e.rewind()
	moved, err := e.advance()
	if err == nil {
		err = e.copyLoops()
	}
	for err == nil && e.busy > 0 {
		if !moved && !e.glance() {
			return e.wait(ctx)
		}
		moved, err = e.advance()
	}
	return err
}

// rewind begins a call.
func (e *Edges) rewind() {
	for i := range e.outs {
		o := &e.outs[i]
		o.edge, o.at, o.lent = 0, 0, 0
	}
	for i := range e.ins {
		in := &e.ins[i]
		in.edge, in.at = 0, 0
	}
	e.busy, e.err = len(e.outs)+len(e.ins), nil
}

func (e *Edges) copyLoops() error {
	for _, l := range e.loops {
		src, _ := e.block(l.out)
		dst := e.dst.block(l.in)
		if len(src) != len(dst) {
			return &LengthError{Member: e.rank, Theirs: len(src), Mine: len(dst)}
		}
		copy(dst, src)
	}
	return nil
}

// block returns what goes along an edge out, and where it lies.
func (e *Edges) block(place int) ([]byte, Place) {
	if e.whole {
		return e.src.buf, e.srcAt
	}
	return e.src.block(place), e.srcAt.shift(e.src.offset(place))
}

// wait returns when all is done.
func (e *Edges) wait(ctx context.Context) error {
	if err := e.await(ctx, e.ready); e.err == nil {
		return err
	}
	return e.err
}

// advanceAll moves what can be moved, and tells whether nothing is left to be done.
func (e *Edges) advanceAll() bool {
	for moved := true; moved && e.err == nil && e.busy > 0; {
		moved, e.err = e.advance()
	}
	return e.err != nil || e.busy == 0
}

// glance polls for what one other member is about to do, and tells whether it did.
func (e *Edges) glance() bool {
	if e.crowded {
		return false
	}
	for i := range e.ins {
		if in := &e.ins[i]; in.edge < len(in.places) {
			k := in.got + 1
			word := &in.lines[k%lines].turn
			now := word.Load()
			return now == k || wait.Glance(word, now)
		}
	}
	for i := range e.outs {
		if o := &e.outs[i]; !o.done() {
			return wait.Glance(&o.taken.Uint64, o.known)
		}
	}
	return true
}
