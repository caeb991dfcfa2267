package message

import "context"

// Combine computes dst = left ∘ right, element by element. All three have the
// same length, a multiple of the element's size. dst may be left or right itself;
// no other overlap is allowed.
type Combine func(dst, left, right []byte)

// A Folding combines a message with data of the receiver: Dst = Own∘came, or came∘Own
// if Left. Dst is as long as the message. Own is as long and may be Dst itself, but
// does not overlap it otherwise.
type Folding struct {
	Dst, Own []byte
	Left     bool
	Combine  Combine
	Elem     int // bytes of an element
}

// Take combines a part of a message, from byte at on.
func (f *Folding) Take(at int, came []byte) {
	dst, own := f.Dst[at:at+len(came)], f.Own[at:at+len(came)]
	if f.Left {
		f.Combine(dst, came, own)
	} else {
		f.Combine(dst, own, came)
	}
}

// A Transport moves the messages of collective calls between this member and all
// members of a team, in order between any two. One goroutine at a time uses it. A
// transfer of no bytes is a message, too. After an error the transport is of no
// more use: the team is broken.
type Transport interface { //nolint:interfacebloat // one small interface for each pair of these would say less
	// Rank returns this member, from 0 to Size-1.
	Rank() int
	// Size returns the number of members.
	Size() int
	// Send returns when the caller may change src again. It may wait for room at
	// the receiver. Members that all send first would wait for each other for
	// ever, so algorithms use Exchange there.
	Send(ctx context.Context, to int, src []byte) error
	// SendFold is Send to a member that calls Fold.
	SendFold(ctx context.Context, to int, src []byte) error
	// Recv fills dst with the next bytes from a member; sender and receiver give
	// the same length.
	Recv(ctx context.Context, from int, dst []byte) error
	// Fold is Recv that combines the message, in place, and does not copy it. The
	// sender calls SendFold or ExchangeFold.
	Fold(ctx context.Context, from int, f Folding) error
	// Exchange is Send and Recv at the same time; lengths may differ and be 0.
	// src and dst do not overlap.
	Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error
	// ExchangeAll is Exchange with several members at the same time.
	ExchangeAll(ctx context.Context, b Batch) error
	// Expect tells that messages with all of some members follow, nil for all members. A
	// transport may connect to them at once.
	Expect(ctx context.Context, members []int) error
	// ExchangeFold is SendFold and Fold at the same time; lengths may differ and
	// be 0. src and f.Dst do not overlap.
	ExchangeFold(ctx context.Context, to int, src []byte, from int, f Folding) error
}

// A Func is an algorithm: every member calls the same one with Args that agree.
type Func func(ctx context.Context, c Transport, a *Args) error

// expectAll tells c of messages with all members, unless they have no bytes.
func expectAll(ctx context.Context, c Transport, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return c.Expect(ctx, nil)
}
