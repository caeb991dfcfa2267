package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/channel"
)

// noMember stands for the destination or origin of a message that is not sent.
const noMember = message.NoMember

// A source holds the bytes that a transfer sends.
type source struct {
	src    []byte
	folded bool // the receiver combines them
}

// A sink takes the bytes that a transfer receives.
type sink struct {
	dst     []byte
	folded  bool            // the receiver combines them, at once or later
	folding message.Folding // how, if at once
}

// take stores bytes that came for place at, or combines them with those there.
func (s *sink) take(at int, came []byte) {
	if s.folding.Combine != nil {
		s.folding.Take(at, came)
		return
	}
	copy(s.dst[at:], came)
}

// A transfer is one message to a member or from one, in progress.
type transfer struct {
	channel.Message
	end    *channel.End // nil without a message
	member int
}

// sendRecv sends one message and receives another, piece by piece in turns.
func (p *transport) sendRecv(ctx context.Context, to, from int, what source, into sink) error {
	out, in := &p.one[0], &p.one[1]
	*out, *in = transfer{}, transfer{}
	if err := p.prepare(ctx, out, to, len(what.src), what.folded); err != nil {
		return err
	}
	if out.end != nil {
		out.end.BeginSend(&out.Message)
	}
	if err := p.prepare(ctx, in, from, len(into.dst), into.folded); err != nil {
		return err
	}
	if in.end != nil {
		if in.Lands {
			defer in.end.Shut()
		}
		if err := in.end.BeginReceive(ctx, &in.Message, into.dst); err != nil {
			return p.explain(ctx, from, err)
		}
	}
	for out.More() || in.More() {
		for out.More() && p.maySend(out, in) {
			if err := out.end.Send(ctx, &out.Message, what.src); err != nil {
				out.GiveUp()
				return p.explain(ctx, to, err)
			}
		}
		if in.More() {
			if err := in.take(ctx, &into); err != nil {
				out.GiveUp()
				return p.explain(ctx, from, err)
			}
		}
	}
	return out.Wait(ctx)
}

// maySend reports whether the next step sends a piece; else it takes one. Where two ends may
// differ in the length of a message, this member first takes the header of the incoming one.
// It finds a difference there, before it waits for an offer that may never come.
func (p *transport) maySend(out, in *transfer) bool {
	switch {
	case !in.More():
		return true
	case p.telling && in.Done() == 0 && out.NextLands():
		return false
	}
	return out.Done() < in.Done()+lead
}

// prepare describes the message of a transfer, if there is one, and opens its channel.
func (p *transport) prepare(ctx context.Context, t *transfer, member, bytes int, folded bool) error {
	if p.nothing(member, bytes) {
		return nil
	}
	if err := p.open(ctx, member); err != nil {
		return err
	}
	t.end, t.member = p.ends[member], member
	t.Key, t.Bytes, t.Piece, t.Private = channel.Key(p.key), bytes, p.piece, p.telling
	t.Lands = !folded && t.end.Lands(bytes)
	return nil
}

// nothing reports whether the sender sends nothing for a message.
func (p *transport) nothing(member, bytes int) bool {
	return member == noMember || bytes == 0 && !p.telling
}

// take takes the next piece of an incoming message.
func (t *transfer) take(ctx context.Context, into *sink) error {
	at, came, err := t.end.Next(ctx, &t.Message)
	if err != nil {
		return err
	}
	if len(came) > 0 {
		into.take(at, came)
	}
	return t.end.Free(ctx, &t.Message)
}
