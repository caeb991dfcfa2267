package message

import "context"

// All are the messages of an exchange between all members of a carrier, one from each
// to each other.
type All struct {
	src, dst []byte
	out, in  blocks
	spread   bool  // all get the same: src
	members  []int // of the carrier below, by rank; nil: the same
	rank, n  int
}

// Size is the number of members.
func (x *All) Size() int { return x.n }

// Rank is this member's number among them.
func (x *All) Rank() int { return x.rank }

// Member returns the carrier's rank of member i.
func (x *All) Member(i int) int {
	if x.members == nil {
		return i
	}
	return x.members[i]
}

// Out is what member i gets of this one.
func (x *All) Out(i int) []byte {
	if x.spread {
		return x.src
	}
	return x.out.of(x.src, i)
}

// In is where this member takes what member i sends.
func (x *All) In(i int) []byte { return x.in.of(x.dst, i) }

// ExchangeInTurns is ExchangeAll with one member after the other.
func ExchangeInTurns(ctx context.Context, c Carrier, x *All) error {
	for k := 1; k < x.n; k++ {
		to, from := (x.rank+k)%x.n, (x.rank+x.n-k)%x.n
		if err := c.Exchange(ctx, x.Member(to), x.Out(to), x.Member(from), x.In(from)); err != nil {
			return err
		}
	}
	return nil
}
