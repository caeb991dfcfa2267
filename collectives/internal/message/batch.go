package message

import "context"

// A Batch is messages with several members at once: one from each member to each other,
// or one along each edge of a graph. They are numbered in steps, in an order in which
// all members can follow theirs without waiting in a circle.
type Batch struct {
	src, dst []byte
	out, in  blocks
	spread   bool        // all get the same: src
	graph    *Neighbours // nil: all members
	members  []int       // of the carrier below, by rank; nil: the same
	rank, n  int
}

// A Step is what leaves and what comes at the same place of a Batch. Where a member is
// Nobody there is nothing.
type Step struct {
	To   int
	Src  []byte
	From int
	Dst  []byte
}

// Nobody is the member that nothing goes to, or comes from.
const Nobody = none

// Steps is how many there are.
func (b *Batch) Steps() int {
	if b.graph != nil {
		return len(b.graph.hops)
	}
	return b.n - 1
}

// Step returns the one of a number.
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

// Most is how many messages there are from one member to another, at the most.
func (b *Batch) Most() int {
	if b.graph != nil {
		return b.graph.most
	}
	return 1
}

// hop is a step along the edges of a graph, or none along a loop.
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

// loop copies what goes from this member to itself.
func (b *Batch) loop() {
	for _, h := range b.graph.hops {
		if h.loops(b.rank) {
			copy(b.in.of(b.dst, h.in.place), b.outgoing(h.out.place))
		}
	}
}

func (b *Batch) outgoing(place int) []byte {
	if b.spread {
		return b.src
	}
	return b.out.of(b.src, place)
}

func (b *Batch) below(member int) int {
	if member == none {
		return none
	}
	return b.members[member]
}

// ExchangeInTurns is ExchangeAll step by step.
func ExchangeInTurns(ctx context.Context, c Carrier, b *Batch) error {
	for k := range b.Steps() {
		s := b.Step(k)
		if err := exchange(ctx, c, s.To, s.Src, s.From, s.Dst); err != nil {
			return err
		}
	}
	return nil
}
