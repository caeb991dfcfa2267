package pipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// An End holds the state that both ends have. Where it takes more than 704 bytes, streams
// of small blocks are slower: rpipe_bw of 8 bytes took 1.5 times as long.
type End struct {
	Role     Role
	Joined   atomic.Bool           // connected to the peer
	Closed   atomic.Bool           // this end was closed
	Deserted bool                  // the peer was closed before this end was connected, and puts nothing here
	writing  bool                  // the writer's end, or the client's
	entry    uint8                 // as entryShift returns
	Broken   atomic.Pointer[error] // why the pipe is of no more use
	far      atomic.Pointer[Far]   // the peer's memory, once it is found
	team     *team.Team
	Spec
	Link
	mine, theirs  Layout
	SummaryUpdate // of the reader's summary, if the pipe belongs to a fan-in
	Options
	Registry *Registry
	stage    Stage
	closing  closing
	wait     waiter // that of Await
	Name     string // with the incarnation
	Rank     int    // of this end
	Peer     int    // of the peer
}

// Draft checks the arguments of an opening. After an error, Fail of the end wraps it.
func Draft[T any](t *runtime.Team, peer int, writing bool, opts []Option) (p *End, err error) {
	p = &End{Rank: t.Rank(), Peer: peer, Name: "(new)", writing: writing}
	if t == nil {
		return p, runtime.ErrTeam
	}
	if p.Options, err = Collect(opts); err != nil {
		return p, err
	}
	p.Name = p.Options.Name
	if uint(peer) >= uint(t.Size()) {
		return p, fmt.Errorf("rank %d: %w [0, %d)", peer, runtime.ErrRange, t.Size())
	}
	elem, err := element.Describe[T]()
	if err != nil {
		return p, err
	}
	o := &p.Options
	p.Spec = Spec{Elem: elem, Size: element.Size[T](), Heap: o.Heap, Width: o.Width, blocks: o.Blocks, pull: o.Pull, sync: o.Sync}
	if o.Served {
		p.Spec = Spec{Size: 1, Heap: o.Heap, Served: true}
	}
	p.team = team.Of(t)
	if err := p.team.Err(); errors.Is(err, runtime.ErrTeamFreed) {
		return p, err
	}
	p.Layer = o.layer(p.team)
	p.Registry, err = RegistryOf(p.team)
	return p, err
}

// plug makes this end's memory for an incarnation of the pipe.
func (p *End) plug(ctx context.Context, incarnation int) error {
	p.entry = p.entryShift()
	mine := Layout{Name: p.region(incarnation, true), Flags: writerFlags, Data: p.writerData()}
	theirs := Layout{Name: p.region(incarnation, false), Flags: p.readerFlags(), Data: p.readerData()}
	if !p.writing {
		mine, theirs = theirs, mine
	}
	stage := 0                                      // bytes of one that the end may take
	if p.Spec.pull != p.writing && !p.Spec.Served { // this end has no heap
		stage = p.Spec.Heap
	}
	return p.Hook(ctx, incarnation, mine, theirs, stage)
}

// prepare writes this end's card.
func (p *End) prepare(data []byte) {
	p.encode(data, p.Options.Summary.Entry(p.Place))
}

// Join connects to the peer and compares cards. Without wait it does nothing while the peer is
// not open. Then Joined stays false.
func (p *End) Join(ctx context.Context, wait bool) error {
	var theirs card
	var refused error
	ok, err := p.Connect(ctx, wait, func(data []byte) error {
		theirs = decode(data)
		refused = p.compare(&theirs, p.Rank, p.Peer)
		return refused
	})
	// The cause of ctx's end may be any error, and says nothing about the card.
	if refused != nil || errors.Is(err, ErrCorrupt) && ctx.Err() == nil {
		c := &p.closing
		c.look = theirs.entry()
		if c.known.differs = errors.Is(refused, runtime.ErrMismatch); c.known.differs {
			c.known.told = p.tellRefusal(ctx)
		} else {
			p.pokeSummary(ctx)
		}
		return p.Breaks(err)
	}
	if wait && err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (while waiting for rank %d to open its end)", err, p.Peer)
	}
	if !ok || err != nil {
		return err
	}
	if err := p.FindWord(ctx, theirs.entry()); err != nil {
		return err
	}
	// A peer that closes after the card was read finds this end, which appeared before.
	p.Deserted = theirs.State == cardClosed
	p.Joined.Store(true)
	return nil
}

// Breaks records why the pipe is of no more use and returns that.
func (p *End) Breaks(err error) error {
	p.Broken.CompareAndSwap(nil, &err)
	return *p.Broken.Load()
}

// Usable returns why this end cannot be used, nil if it can.
func (p *End) Usable() error {
	if e := p.Broken.Load(); e != nil {
		return *e
	}
	if p.Closed.Load() {
		return ErrSelfClosed
	}
	return nil
}

// Fail wraps the error of an operation. ErrWouldBlock and an OpError stay as they are.
func (p *End) Fail(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrWouldBlock):
		return ErrWouldBlock
	}
	if known := new(OpError); errors.As(err, &known) {
		return err
	}
	return &OpError{Op: op, Pipe: p.Name, Rank: p.Rank, Peer: p.Peer, Err: err}
}
