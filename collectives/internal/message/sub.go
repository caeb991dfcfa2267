package message

import "context"

// A Sub is a transport among some members of another transport, numbered in the
// order of a list.
type Sub struct {
	over    Transport
	members []int // ranks of over
	rank    int   // this member's place in members
}

// NewSub returns a transport among members, ranks of over; this member is one of
// them. The Sub owns the list.
func NewSub(over Transport, members []int) *Sub {
	s := &Sub{}
	s.among(over, members)
	return s
}

// among makes s the transport among members; it allocates nothing.
func (s *Sub) among(over Transport, members []int) {
	s.over, s.members, s.rank = over, members, none
	for i, m := range members {
		if m == over.Rank() {
			s.rank = i
		}
	}
}

// Rank implements Transport.
func (s *Sub) Rank() int { return s.rank }

// Size implements Transport.
func (s *Sub) Size() int { return len(s.members) }

// Send implements Transport.
func (s *Sub) Send(ctx context.Context, to int, src []byte) error {
	return s.over.Send(ctx, s.members[to], src)
}

// SendFold implements Transport.
func (s *Sub) SendFold(ctx context.Context, to int, src []byte) error {
	return s.over.SendFold(ctx, s.members[to], src)
}

// Recv implements Transport.
func (s *Sub) Recv(ctx context.Context, from int, dst []byte) error {
	return s.over.Recv(ctx, s.members[from], dst)
}

// Fold implements Transport.
func (s *Sub) Fold(ctx context.Context, from int, f Folding) error {
	return s.over.Fold(ctx, s.members[from], f)
}

// Exchange implements Transport.
func (s *Sub) Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error {
	return s.over.Exchange(ctx, s.members[to], src, s.members[from], dst)
}

// ExchangeAll implements Transport.
func (s *Sub) ExchangeAll(ctx context.Context, b Batch) error {
	if b.members != nil { // of a transport above this one
		return ExchangeInTurns(ctx, s, &b)
	}
	b.members = s.members
	return s.over.ExchangeAll(ctx, b)
}

// Expect implements Transport.
func (s *Sub) Expect(ctx context.Context, members []int) error {
	if members == nil {
		return s.over.Expect(ctx, s.members)
	}
	below := make([]int, len(members))
	for i, m := range members {
		below[i] = s.members[m]
	}
	return s.over.Expect(ctx, below)
}

// ExchangeFold implements Transport.
func (s *Sub) ExchangeFold(ctx context.Context, to int, src []byte, from int, f Folding) error {
	return s.over.ExchangeFold(ctx, s.members[to], src, s.members[from], f)
}
