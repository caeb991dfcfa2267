package board

import (
	"context"

	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/wait"
)

// AllGather sends a.Send along every edge out, and fills a block of a.Recv from
// every edge in. Lengths may differ; both ends of an edge know its length.
func (e *Edges) AllGather(ctx context.Context, seq, chain uint64, a *Args) error {
	e.whole, e.src = true, table{}
	e.src.buf = a.Send
	return e.exchange(ctx, seq, chain, a)
}

// AllToAll sends a block of a.Send along every edge out, and fills a block of
// a.Recv from every edge in. Lengths may differ; both ends of an edge know its
// length.
func (e *Edges) AllToAll(ctx context.Context, seq, chain uint64, a *Args) error {
	e.whole, e.src = false, a.sendTable(len(a.Send)/max(e.out, 1))
	return e.exchange(ctx, seq, chain, a)
}

// exchange makes one call along the graph. An error ends the queues for all later calls: their lines
// may hold parts of this one.
func (e *Edges) exchange(ctx context.Context, seq, chain uint64, a *Args) error {
	if e.failure != nil {
		return e.failure
	}
	e.seq, e.chain, e.cached = seq, chain, bulk.Cached(e.n, len(a.Recv))
	e.dst, e.srcAt = a.recvTable(len(a.Recv)/max(e.in, 1)), a.SendAt
	err := e.move(ctx)
	e.src.buf, e.dst.buf = nil, nil // they belong to the caller
	if err != nil {
		e.giveUp(err)
	}
	return err
}

// move moves all blocks of the call.
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
		o.edge, o.at = 0, 0
	}
	for i := range e.ins {
		in := &e.ins[i]
		in.edge, in.at = 0, 0
	}
	e.busy, e.err = len(e.outs)+len(e.ins), nil
}

// copyLoops copies the blocks of this member's edges to itself.
func (e *Edges) copyLoops() error {
	for _, l := range e.loops {
		src, _ := e.block(l.out)
		dst := e.dst.block(l.in)
		if len(src) != len(dst) {
			return &LengthError{Member: e.rank, Theirs: len(src), Mine: len(dst)}
		}
		bulk.Copy(dst, src, e.cached)
	}
	return nil
}

// block returns the block for an edge out, and its place.
func (e *Edges) block(place int) ([]byte, Place) {
	if e.whole {
		return e.src.buf, e.srcAt
	}
	return e.src.block(place), e.srcAt.shift(e.src.offset(place))
}

// wait returns when the call is complete.
func (e *Edges) wait(ctx context.Context) error {
	if err := e.await(ctx, e.ready); e.err == nil {
		return err
	}
	return e.err
}

// advanceAll moves all pieces that it can, and reports whether the call is complete
// or has failed.
func (e *Edges) advanceAll() bool {
	for moved := true; moved && e.err == nil && e.busy > 0; {
		moved, e.err = e.advance()
	}
	return e.err != nil || e.busy == 0
}

// glance polls for the next step of one peer, and reports whether the peer made
// it.
func (e *Edges) glance() bool {
	if e.crowded {
		return false
	}
	for i := range e.ins {
		if in := &e.ins[i]; in.edge < len(in.places) {
			k := in.got + 1
			word := &in.lines[k%queueLines].turn
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
