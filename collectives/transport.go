package collectives

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/channel"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// A transport implements message.Transport for a team. All messages from one member to
// another go through one channel, in order. The two ends agree by length and use on how the
// bytes go: with the header, through the ring, or straight to a landing.
//
// By the key of the call in the header, a receiver recognizes a message of another call
// before it uses a byte. By the length, it recognizes a message whose sender gave another
// length. The sender sends nothing for a message of no bytes, except in calls in which only
// the two ends know the length. There it sends a header, since the receiver may expect
// bytes.
type transport struct {
	group   *group
	ends    []*channel.End // by member, nil until the first message
	places  [][]byte       // memory of the ends, by member; made ahead of them
	all     bool           // all ends are there
	ring    int            // bytes of a channel's rings
	key     team.Key       // of the call
	piece   int            // bytes of a piece, in whole elements
	telling bool           // empty messages have a header
	waited  bool           // this member waited for another in this call
	large   []byte
	one     [2]transfer // to a member and from one
	pace    pace
}

const (
	// mostRing has room for a few pieces in flight. In a large team the rings are smaller:
	// allRings bytes together, but at least leastRing for each member.
	mostRing, leastRing = team.ExtentSize - channel.FirstSize, 64 << 10
	allRings            = team.MostExtents * mostRing
	// lead bounds the steps that an exchange makes ahead of those that it received. See
	// package channel.
	lead = channel.Lead
)

// ringFor returns the bytes of a channel's rings in a team of n, the same at all members.
func ringFor(n int) int { return min(max(allRings/n&^(leastRing-1), leastRing), mostRing) }

// newTransport returns a transport that has no channels yet.
func newTransport(g *group) *transport {
	n := len(g.team.Members)
	return &transport{group: g, ends: make([]*channel.End, n), places: make([][]byte, n), ring: ringFor(n), pace: newPace(g.team.Crowded())}
}

// begin prepares for a call on elements of a size.
func (p *transport) begin(key team.Key, elem int, telling bool) {
	p.key, p.piece, p.telling, p.waited = key, channel.MostPiece(p.ring), telling, false
	if elem <= p.piece {
		p.piece -= p.piece % elem
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

// ExchangeFold implements message.Transport. An element that is longer than a piece is received whole
// before it is combined.
func (p *transport) ExchangeFold(ctx context.Context, to int, src []byte, from int, f message.Folding) error {
	what := source{src, true}
	if f.Elem <= p.piece {
		return p.sendRecv(ctx, to, from, what, sink{dst: f.Dst, folded: true, folding: f})
	}
	// Pieces end within elements: large takes the whole message first.
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

// Expect connects to all members to which this one is not connected, at once. Ahead of that it
// makes the memory for their messages, so that each of them finds it when it connects.
func (p *transport) Expect(ctx context.Context, members []int) error {
	if p.all {
		return nil
	}
	everyone := members == nil
	if everyone {
		members = allMembers(p.Size())
	}
	var missing, ranks []int
	for _, m := range members {
		if m != p.Rank() && p.ends[m] == nil {
			missing, ranks = append(missing, m), append(ranks, p.group.team.Members[m])
		}
	}
	for _, m := range missing {
		if err := p.place(ctx, m); err != nil {
			return err
		}
	}
	p.group.team.StartPeers(ranks, p.wanted(), true)
	for _, m := range missing {
		if err := p.open(ctx, m); err != nil {
			return err
		}
	}
	p.all = everyone
	return nil
}

// place makes the memory for messages of another member, unless it exists.
func (p *transport) place(ctx context.Context, member int) (err error) {
	switch x := p.group.team.Extents; {
	case p.places[member] != nil:
	case x != nil:
		p.places[member], err = x.Mine(member)
	default:
		p.places[member], err = p.group.reserveFor(ctx, member, p.channelName(member), channel.Size(p.ring), channel.FirstSize)
	}
	return err
}

// open makes this member's endpoint for messages with another member, unless it exists. It
// does not wait until that member has done the same.
func (p *transport) open(ctx context.Context, member int) error {
	if p.ends[member] != nil {
		return nil
	}
	if err := p.place(ctx, member); err != nil {
		return err
	}
	t, rank := p.group.team, p.group.team.Members[member]
	t.StartPeers([]int{rank}, p.wanted(), true) // that member makes its endpoint for this one, too
	peer, err := t.PeerFor(ctx, rank, p.wanted())
	if err != nil {
		return err
	}
	reach, shortage := func(ctx context.Context) (*fabric.Remote, error) { return t.AwaitRegion(ctx, rank, p.wanted()) }, p.group.shortage.Cause
	if x := t.Extents; x != nil {
		reach, shortage = func(ctx context.Context) (*fabric.Remote, error) { return x.Of(ctx, member) }, x.Shortage
	}
	p.ends[member] = channel.New(channel.Config{Memory: p.places[member], Ring: p.ring, Lands: peer.Lands(), NewLanding: t.NewLanding,
		Await: func(ctx context.Context, ready func() bool) error {
			p.waited = true
			return t.Await(ctx, ready)
		},
		Shortage: shortage,
		Reach:    reach})
	return nil
}

// wanted returns the name by which this member asks others for memory that it writes.
func (p *transport) wanted() string {
	if x := p.group.team.Extents; x != nil {
		return x.Region()
	}
	return p.channelName(p.Rank())
}

// channelName returns the name of the memory that a member of the team writes.
func (p *transport) channelName(member int) string {
	return p.group.team.Name + "/channel/" + strconv.Itoa(member)
}

// explain turns an error of a channel with a member into the error of the call.
func (p *transport) explain(ctx context.Context, member int, err error) error {
	var differs *channel.Differs
	var length *channel.LengthError
	switch {
	case errors.As(err, &differs):
		return p.group.team.Differs(ctx, min(differs.Seq, p.key.Seq), member) // the message may be left from an earlier call, which differed then
	case errors.As(err, &length):
		return p.group.unlike(member, length.Theirs, length.Mine)
	case errors.Is(err, ErrCorrupt):
		return fmt.Errorf("message from rank %d: %w", member, err)
	}
	return err
}

// close frees what endpoints hold beside their memory.
func (p *transport) close() error {
	var errs []error
	for _, end := range p.ends {
		if end != nil {
			errs = append(errs, end.Close())
		}
	}
	p.ends, p.places, p.large = nil, nil, nil
	return errors.Join(errs...)
}
