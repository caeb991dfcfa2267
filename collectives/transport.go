package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe"
)

// A transport implements message.Transport for a team. A message goes in one of three
// ways, which both ends know by its length and use:
//
//   - A short message goes eagerly.
//   - A long message goes by rendezvous, if its receiver does not combine it and a
//     device has landings.
//   - Any other message goes by the pipe between the two members, in blocks. A block
//     takes at most a quarter of the pipe's heap.
//
// A short message and every block have a header:
//
//	0     8       16       24     32
//	| seq | chain | length | turn | bytes ...
//	  key of call   of the whole message
//
// By the key the receiver recognizes a message of another call before it uses a byte.
// The turn counts all messages from one member to another, in all ways. By the turn the
// receiver recognizes a message that went in another way than expected. The sender
// sends nothing for a message of no bytes, except in calls in which only the two ends
// know the length. There it sends a header, since the receiver may expect bytes.
type transport struct {
	group    *group
	partners []partner
	heap     int      // bytes of each pipe's heap
	ring     int      // bytes of each row's ring
	key      team.Key // of the call
	step     int      // bytes of a block, in whole elements
	telling  bool     // empty messages have a header
	waited   bool     // this member waited for another in this call
	head     [headerSize]byte
	large    []byte
	place    [offerLanded]byte
	slot     [slotSize]byte
	watch    watch
	one      [2]transfer // to a member and from one
}

// A partner is the state of messages with one other member.
type partner struct {
	out *rpipe.Writer[byte]
	in  *rpipe.Reader[byte]
	// A block that this member read while it waited for another message.
	early rpipe.Block[byte]
	kept  bool
	there *fabric.Remote // this member's row at the partner, nil until this member writes to it
	eager eager
	// The numbers of messages to the partner and from it, in all ways.
	outgoing, incoming uint64
	// Long messages: given and taken count those to the partner and from it.
	lands        bool // the partner may have landings
	landing      fabric.Landing
	given, taken uint64
	sent, landed uint64 // pieces of long messages
}

const (
	headerSize = 32
	// mostHeap has room for a few blocks in flight and for those in use at the ends.
	// In a large team the heaps are smaller: allHeaps bytes together, but at least
	// leastHeap each. Rows take a quarter more.
	mostHeap, leastHeap = 1 << 20, 64 << 10
	allHeaps            = 64 << 20
	// pipeName names the pipes. A program hardly gives this name to its own.
	pipeName = "(collectives)"
	// lead bounds the blocks that an exchange sends ahead of those that it received.
	// A heap has room for four. So a member waits for room only at a member that is
	// further behind, and members never wait in a circle.
	lead = 2
)

// heapFor returns the size of a pipe's heap in a team of n, the same at both ends.
func heapFor(n int) int { return min(max(allHeaps/n&^(leastHeap-1), leastHeap), mostHeap) }

func newTransport(g *group) *transport {
	n := len(g.team.Members)
	p := &transport{group: g, partners: make([]partner, n), heap: heapFor(n)}
	p.ring = ringFor(p.heap)
	p.watch.ready = func() bool { return p.arrived() || p.unexpected() }
	return p
}

// block returns the longest block without its header.
func (p *transport) block() int { return p.heap/4 - headerSize }

// begin prepares for a call on elements of a size.
func (p *transport) begin(key team.Key, elem int, telling bool) {
	p.key, p.step, p.telling, p.waited = key, p.block(), telling, false
	if elem <= p.step {
		p.step -= p.step % elem
	}
}

func (p *transport) Rank() int { return p.group.team.Rank }

func (p *transport) Size() int { return len(p.group.team.Members) }

func (p *transport) Send(ctx context.Context, to int, src []byte) error {
	return p.sendRecv(ctx, to, noMember, source{src: src}, sink{})
}

func (p *transport) SendFold(ctx context.Context, to int, src []byte) error {
	return p.sendRecv(ctx, to, noMember, source{src, true}, sink{})
}

func (p *transport) Recv(ctx context.Context, from int, dst []byte) error {
	return p.sendRecv(ctx, noMember, from, source{}, sink{dst: dst})
}

func (p *transport) Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error {
	return p.sendRecv(ctx, to, from, source{src: src}, sink{dst: dst})
}

func (p *transport) Fold(ctx context.Context, from int, f message.Folding) error {
	return p.ExchangeFold(ctx, noMember, nil, from, f)
}

func (p *transport) ExchangeFold(ctx context.Context, to int, src []byte, from int, f message.Folding) error {
	what := source{src, true}
	if f.Elem <= p.block() {
		return p.sendRecv(ctx, to, from, what, sink{dst: f.Dst, folded: true, folding: f})
	}
	// Blocks end within elements: large takes the whole message first.
	if len(p.large) < len(f.Dst) {
		p.large = make([]byte, len(f.Dst))
	}
	came := p.large[:len(f.Dst)]
	if err := p.sendRecv(ctx, to, from, what, sink{dst: came, folded: true}); err != nil {
		return err
	}
	f.Take(0, came)
	return nil
}

// open makes the pipes and the row for messages with another member at this end, unless
// they exist. It does not wait until that member has done the same.
func (p *transport) open(ctx context.Context, member int) error {
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
