package rpipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// A pipe holds the state that both ends have.
type pipe struct {
	joined atomic.Bool
	closed atomic.Bool           // this end was closed
	broken atomic.Pointer[error] // why the pipe is of no more use
	words  []atomic.Uint64       // this end's flags where they lie side by side, else nil
	spec
	link
	registry *registry
	name     string // with the incarnation
	rank     int    // of this end
	peer     int    // of the peer
	parting  parting
	options
}

// draft checks what a pipe is opened with.
func draft[T any](t *runtime.Team, peer int, opts []Option) (p *pipe, inner *team.Team, err error) {
	p = &pipe{rank: t.Rank(), peer: peer, name: "(new)"}
	if t == nil {
		return p, nil, runtime.ErrTeam
	}
	if p.options, err = collect(opts); err != nil {
		return p, nil, err
	}
	p.name = p.options.name
	if uint(peer) >= uint(t.Size()) {
		return p, nil, fmt.Errorf("rank %d: %w [0, %d)", peer, runtime.ErrRange, t.Size())
	}
	elem, err := element.Describe[T]()
	if err != nil {
		return p, nil, err
	}
	o := &p.options
	p.spec = spec{elem: elem, size: element.Size[T](), heap: o.heap, width: o.width, blocks: o.blocks, pull: o.pull, sync: o.sync}
	inner = team.Of(t)
	if err := inner.Err(); errors.Is(err, runtime.ErrTeamFreed) {
		return p, nil, err
	}
	p.registry, err = registryOf(inner)
	return p, inner, err
}

// plug makes this end's memory for an incarnation of the pipe.
func (p *pipe) plug(ctx context.Context, pair *pairing, incarnation int, writing bool) error {
	w := linkEnd{pair.region(incarnation, writersEnd), writerFlags, p.writerData()}
	r := linkEnd{pair.region(incarnation, readersEnd), p.readerFlags(), p.readerData()}
	stage := 0
	if p.spec.pull != writing { // this end has no heap
		stage = p.spec.heap
	}
	if !writing {
		w, r = r, w
	}
	return p.hook(ctx, pair.team, incarnation, w, r, stage)
}

// hook makes the link. stage is how much of one the end may ask for.
func (p *pipe) hook(ctx context.Context, t *team.Team, incarnation int, mine, theirs linkEnd, stage int) (err error) {
	if p.carrier == nil {
		p.link, err = newFabricLink(ctx, t, t.Members[p.peer], mine, theirs, p.fma, p.prepare)
	} else {
		p.link, err = p.board(t, mine, theirs, stage)
	}
	if err != nil {
		return err
	}
	if by, ok := p.link.(inMemory); ok {
		p.words = by.words()
	}
	p.name = fmt.Sprintf("%s#%d", p.name, incarnation)
	return nil
}

// flag is the link's, without a call where that can be.
func (p *pipe) flag(i int) uint64 {
	if p.words != nil {
		return p.words[i].Load()
	}
	return p.link.flag(i)
}

// prepare writes this end's card.
func (p *pipe) prepare(card []byte) {
	p.encode(card)
	p.options.tally.encode(card, p.group)
}

// join connects to the peer and compares cards. Without wait it is false
// while the peer is not open. deserted reports whether the peer was closed
// before it was connected, and will put nothing here.
func (p *pipe) join(ctx context.Context, wait bool) (joined, deserted bool, err error) {
	var counter counter
	var refused error
	ok, err := p.connect(ctx, wait, func(card []byte) error {
		if binary.LittleEndian.Uint64(card[cardMagic:]) == magic {
			counter = counterOf(card)
		}
		refused = p.compare(card, p.rank, p.peer)
		return refused
	})
	// The cause of ctx's end may be any error, and says nothing about the card.
	if refused != nil || errors.Is(err, ErrCorrupt) && ctx.Err() == nil {
		p.parting.unlooked = counter
		if errors.Is(refused, runtime.ErrMismatch) {
			p.parting.differs.Store(true)
			p.disownOther(ctx)
		} else {
			p.knock(ctx)
		}
		return false, false, p.breaks(err)
	}
	if !ok || err != nil {
		return false, false, err
	}
	if err := p.joinCounter(ctx, counter); err != nil {
		return false, false, err
	}
	var state [8]byte
	if err := p.get(ctx, cardState, state[:]); err != nil {
		return false, false, err
	}
	p.joined.Store(true)
	return true, binary.NativeEndian.Uint64(state[:]) == stateClosed, nil
}

// abandon marks the card of an end that closes without being connected.
func (p *pipe) abandon() {
	atomics.Word64(p.local()[cardState:]).Store(stateClosed)
}

// breaks records why the pipe is of no more use and returns that.
func (p *pipe) breaks(err error) error {
	p.broken.CompareAndSwap(nil, &err)
	return *p.broken.Load()
}

// usable returns why this end cannot be used, nil if it can.
func (p *pipe) usable() error {
	if e := p.broken.Load(); e != nil {
		return *e
	}
	if p.closed.Load() {
		return errSelfClosed
	}
	return nil
}

// fail wraps what an operation failed with. ErrWouldBlock stays as it is.
func (p *pipe) fail(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrWouldBlock):
		return ErrWouldBlock
	}
	return &OpError{Op: op, Pipe: p.name, Rank: p.rank, Peer: p.peer, Err: err}
}
