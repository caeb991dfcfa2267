package message

import "context"

// A Batch is a set of messages with several members at the same time. It has one
// from each member to each other, or one along each edge of a graph. Steps number
// them, in an order in which all members can follow theirs without waiting in a
// circle.
type Batch struct {
	src, dst []byte
	out, in  blocks
	spread   bool       // all members get the same: src
	graph    *Neighbors // nil: all members
	members  []int      // of the transport below, by rank; nil: the same
	rank, n  int
}

// A Step holds the message that leaves and the one that comes at the same place of a
// Batch. If a member is NoMember the step has no such message.
type Step struct {
	To   int
	Src  []byte
	From int
	Dst  []byte
}

// NoMember stands in a Step without a message to send, or to receive.
const NoMember = none

// Steps returns the number of steps.
func (b *Batch) Steps() int {
	if b.graph != nil {
		return len(b.graph.hops)
	}
	return b.n - 1
}

// Step returns step k.
func (b *Batch) Step(k int) (s Step) {
	if b.graph != nil {
		s = b.hop(b.graph.hops[k])
	} else {
		s.To, s.From = (b.rank+k+1)%b.n, (b.rank+b.n-k-1)%b.n
		s.Src, s.Dst = b.outgoing(s.To), b.in.of(b.dst, s.From)
	}
	if b.members != nil {
		s.To, s.From = b.below(s.To), b.below(s.From)
	}
	return s
}

// Most returns the largest number of messages from one member to another.
func (b *Batch) Most() int {
	if b.graph != nil {
		return b.graph.most
	}
	return 1
}

// hop returns the step of a hop, or an empty one for a loop.
func (b *Batch) hop(h hop) Step {
	s := Step{To: h.out.member, From: h.in.member}
	if h.loops(b.rank) {
		return Step{To: none, From: none}
	}
	if s.To != none {
		s.Src = b.outgoing(h.out.place)
	}
	if s.From != none {
		s.Dst = b.in.of(b.dst, h.in.place)
	}
	return s
}

// loop copies the message of this member to itself.
func (b *Batch) loop() {
	for _, h := range b.graph.hops {
		if h.loops(b.rank) {
			copy(b.in.of(b.dst, h.in.place), b.outgoing(h.out.place))
		}
	}
}

// outgoing returns the blocks that the batch sends to a place.
func (b *Batch) outgoing(place int) []byte {
	if b.spread {
		return b.src
	}
	return b.out.of(b.src, place)
}

// below returns the rank of a member of the batch, none for none.
func (b *Batch) below(member int) int {
	if member == none {
		return none
	}
	return b.members[member]
}

// ExchangeInTurns is ExchangeAll step by step.
func ExchangeInTurns(ctx context.Context, c Transport, b *Batch) error {
	for k := range b.Steps() {
		s := b.Step(k)
		if err := exchange(ctx, c, s.To, s.Src, s.From, s.Dst); err != nil {
			return err
		}
	}
	return nil
}
