package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe"
)

// A carrier is the message.Transport of a team. A message goes in one of three ways,
// which both ends know by its length and use: eagerly if it is short, by rendezvous if
// it is long and not combined where a device has landings, and else by the pipe that
// there is each way between this member and those that it exchanged messages with: as
// one block or several, none of which takes more than a quarter of a pipe's heap. A
// short message and every block have a header:
//
//	0     8       16       24     32
//	| seq | chain | length | turn | bytes ...
//	  key of call   of the whole message
//
// So what is of another call is told before a byte of it is used. The turn counts all
// messages from one member to the other, in whatever way they go: one that went in
// another way than its receiver expects is not taken for one that comes later. A
// message of no bytes is none, but for calls in which only its two ends know how long
// it is: there it is a header, or one end would wait for what the other has not got.
type carrier struct {
	group    *group
	partners []partner
	heap     int      // bytes of each pipe's
	ring     int      // of each row's
	key      team.Key // of the call
	step     int      // bytes of a block, in whole elements
	telling  bool     // of empty messages
	waited   bool     // for a word or block of another's, in this call
	head     [headerSize]byte
	large    []byte
	place    [offerLanded]byte
	slot     [slotSize]byte
	watch    watch
	one      [2]course // out and in
}

// A partner is another member.
type partner struct {
	out *rpipe.Writer[byte]
	in  *rpipe.Reader[byte]
	// A block that was read while something else was waited for.
	early rpipe.Block[byte]
	kept  bool
	there *fabric.Remote // this member's row there, nil until something is written to it
	eager eager
	// Messages to the other and from it, in all ways.
	outgoing, incoming uint64
	// For long messages, of which so many were given to the other and taken from it.
	lands        bool // the other may have landings
	landing      fabric.Landing
	given, taken uint64
	sent, landed uint64 // pieces of them
}

const (
	headerSize = 32
	// mostHeap holds a few blocks on their way while others are made and used. A
	// member that exchanges messages with very many has smaller heaps, which take
	// allHeaps together, but no less than leastHeap each. Rows take a quarter more.
	mostHeap, leastHeap = 1 << 20, 64 << 10
	allHeaps            = 64 << 20
	// pipeName is not a name that programs are likely to give their pipes.
	pipeName = "(collectives)"
	// lead is how many blocks an exchange sends ahead of what it received. With a
	// heap of four, a member waits for room only at one that is further behind,
	// so they never wait in a circle.
	lead = 2
)

// heapFor returns the size of a pipe's heap in a team of n, the same at both ends.
func heapFor(n int) int { return min(max(allHeaps/n&^(leastHeap-1), leastHeap), mostHeap) }

func newCarrier(g *group) *carrier {
	n := len(g.team.Members)
	p := &carrier{group: g, partners: make([]partner, n), heap: heapFor(n)}
	p.ring = ringFor(p.heap)
	p.watch.ready = func() bool { return p.there() || p.strays() }
	return p
}

// block returns the longest block without its header.
func (p *carrier) block() int { return p.heap/4 - headerSize }

// begin prepares for a call on elements of a size.
func (p *carrier) begin(key team.Key, elem int, telling bool) {
	p.key, p.step, p.telling, p.waited = key, p.block(), telling, false
	if elem <= p.step {
		p.step -= p.step % elem
	}
}

func (p *carrier) Rank() int { return p.group.team.Rank }

func (p *carrier) Size() int { return len(p.group.team.Members) }

func (p *carrier) Send(ctx context.Context, to int, src []byte) error {
	return p.transfer(ctx, to, nobody, source{src: src}, sink{})
}

func (p *carrier) SendFold(ctx context.Context, to int, src []byte) error {
	return p.transfer(ctx, to, nobody, source{src, true}, sink{})
}

func (p *carrier) Recv(ctx context.Context, from int, dst []byte) error {
	return p.transfer(ctx, nobody, from, source{}, sink{dst: dst})
}

func (p *carrier) Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error {
	return p.transfer(ctx, to, from, source{src: src}, sink{dst: dst})
}

func (p *carrier) Fold(ctx context.Context, from int, f message.Folding) error {
	return p.ExchangeFold(ctx, nobody, nil, from, f)
}

func (p *carrier) ExchangeFold(ctx context.Context, to int, src []byte, from int, f message.Folding) error {
	what := source{src, true}
	if f.Elem <= p.block() {
		return p.transfer(ctx, to, from, what, sink{dst: f.Dst, folded: true, folding: f})
	}
	// Blocks end within elements, which come together here.
	if len(p.large) < len(f.Dst) {
		p.large = make([]byte, len(f.Dst))
	}
	came := p.large[:len(f.Dst)]
	if err := p.transfer(ctx, to, from, what, sink{dst: came, folded: true}); err != nil {
		return err
	}
	f.Take(0, came)
	return nil
}

// open makes what messages with another member take at this end, unless it is there:
// the pipes, and the row. It does not wait for the other one to do the same.
func (p *carrier) open(ctx context.Context, member int) error {
	if p.partners[member].out != nil {
		return nil
	}
	peer, err := p.group.team.Peer(ctx, p.group.team.Members[member])
	if err != nil {
		return err
	}
	row, err := p.group.reserve(ctx, p.rowName(member), p.rowSize())
	if err != nil {
		return err
	}
	in, err := rpipe.OpenReader[byte](ctx, p.group.handle, member, rpipe.WithName(pipeName), rpipe.WithHeap(p.heap))
	if err != nil {
		return err
	}
	with := &p.partners[member]
	*with = partner{in: in, lands: peer.Lands(), eager: eager{row: row}}
	with.out, err = rpipe.OpenWriter[byte](ctx, p.group.handle, member, rpipe.WithName(pipeName), rpipe.WithHeap(p.heap))
	return err
}
