package message

import "context"

// Combine computes dst = left ∘ right, element by element. All three have the
// same length, a multiple of the element's size; dst may be left or right
// itself, and no other overlap is allowed.
type Combine func(dst, left, right []byte)

// A Folding combines what comes with what a member has: Dst = Own∘came, or came∘Own
// if Left. Dst is as long as what comes. Own is as long and may be Dst itself, and does
// not overlap it else.
type Folding struct {
	Dst, Own []byte
	Left     bool
	Combine  Combine
	Elem     int // bytes of an element
}

// Take combines what came of a message from a byte on.
func (f *Folding) Take(at int, came []byte) {
	dst, own := f.Dst[at:at+len(came)], f.Own[at:at+len(came)]
	if f.Left {
		f.Combine(dst, came, own)
	} else {
		f.Combine(dst, own, came)
	}
}

// A Carrier moves the messages of collective calls between the members of a
// team, in order between any two. It is used by one goroutine at a time. A
// transfer of no bytes moves no more than word of it. After an error the carrier
// is of no more use: the team is broken.
type Carrier interface { //nolint:interfacebloat // one small interface for each pair of these would say less
	// Rank is this member, from 0 to Size-1.
	Rank() int
	// Size is the number of members.
	Size() int
	// Send returns when src may be changed again. It may wait for room at the
	// receiver: members that all send first would wait for each other for ever,
	// so algorithms use Exchange there.
	Send(ctx context.Context, to int, src []byte) error
	// SendFold is Send to a member that folds what comes.
	SendFold(ctx context.Context, to int, src []byte) error
	// Recv fills dst with the next bytes from a member; sender and receiver give
	// the same length.
	Recv(ctx context.Context, from int, dst []byte) error
	// Fold is Recv that combines what comes, where it lies, in place of copying it.
	// The other end calls SendFold or ExchangeFold.
	Fold(ctx context.Context, from int, f Folding) error
	// Exchange is Send and Recv at once; lengths may differ and be 0. src and
	// dst do not overlap.
	Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error
	// ExchangeAll is Exchange with several others at once.
	ExchangeAll(ctx context.Context, b Batch) error
	// ExchangeFold is SendFold and Fold at once; lengths may differ and be 0. src
	// and f.Dst do not overlap.
	ExchangeFold(ctx context.Context, to int, src []byte, from int, f Folding) error
}

// A Func is an algorithm: every member of the carrier calls the same with Args
// that agree.
type Func func(ctx context.Context, c Carrier, a *Args) error
