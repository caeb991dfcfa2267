package collectives

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/collectives/internal/board"
	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
)

// A crew is what choices depend on of those who make a call together. It is the same
// at all of them.
type crew struct {
	n       int
	hosts   int  // that they are on
	shared  bool // some are on one host
	runs    bool // those of each host follow one another
	crowded bool // some host has more of them than cores
}

// together are n members on one host.
func together(n int) crew { return crew{n: n, hosts: 1, shared: n > 1, runs: true} }

// crewOf returns a team's.
func crewOf(t *fabric.Team) crew {
	n := len(t.Members)
	if t.Hosts == nil {
		return together(n)
	}
	h := message.NewHosts(t.Hosts)
	return crew{n: n, hosts: h.Count(), shared: h.Count() < n, runs: h.Runs(), crowded: t.Crowded}
}

// are reports whether a crew is where a rule wants it.
func (w crew) are(at where) bool {
	switch at {
	case severalHosts:
		return w.hosts > 1
	case sharedCores:
		return w.crowded
	}
	return true
}

// levels reports whether a crew can do something else within hosts than among them.
func (w crew) levels() bool { return w.hosts > 1 && w.shared }

func (w crew) String() string {
	about := fmt.Sprintf("%d ranks", w.n)
	if w.hosts > 1 {
		about += fmt.Sprintf(" on %d hosts", w.hosts)
	}
	if w.crowded {
		about += " that share cores"
	}
	return about
}

// A hosting is what the two-level calls of a team use at a member: messages among
// hosts, and within its host a board, if all members there map each other's memory.
type hosting struct {
	group   *group
	hosts   *message.Hosts
	members []int    // of this host, by team rank
	met     bool     // they have found out whether they can have a board
	meeting *meeting // nil without
	onBoard message.Within
}

func newHosting(g *group) *hosting {
	h := &hosting{group: g, hosts: message.NewHosts(g.team.Hosts)}
	h.members = h.hosts.Beside(g.team.Rank)
	return h
}

// serve returns the hosts for a call, with what is best for it within them and among
// them.
func (h *hosting) serve(ctx context.Context, c *Call) (*message.Hosts, error) {
	if !h.met {
		if err := h.meet(ctx); err != nil {
			return nil, err
		}
		h.met = true
	}
	ways, size := &h.group.guide.ways, c.bytes(len(h.group.team.Members))
	among, within := together(h.hosts.Count()), together(len(h.members))
	within.crowded = h.group.guide.crew.crowded
	h.hosts.Among = message.Among{
		Broadcast: ways.byRule(message.Broadcast, c, size, among).Run,
		Reduce:    ways.byRule(message.Reduce, c, size, among).Run,
		AllReduce: ways.byRule(message.AllReduce, c, size, among).Run,
		AllGather: ways.byRule(message.AllGather, c, size, among).Run,
	}
	if h.meeting != nil && fitsBoard(c, len(h.members)) {
		h.hosts.Within = h.onBoard
		return h.hosts, nil
	}
	h.hosts.Within = message.Within{
		Broadcast: ways.byRule(message.Broadcast, c, size, within).Run,
		Reduce:    ways.byRule(message.Reduce, c, size, within).Run,
		Gather:    ways.byRule(message.Gather, c, size, within).Run,
	}
	return h.hosts, nil
}

// meet makes a board for the members of this host if they can have one. All of them
// come here in the same call.
func (h *hosting) meet(ctx context.Context) error {
	if len(h.members) == 1 {
		return nil
	}
	maps, err := h.mapsAll(ctx)
	if err != nil {
		return err
	}
	if maps, err = h.agree(ctx, maps); err != nil {
		return err
	}
	h.group.guide.explainHost(h.group.team, len(h.members), maps)
	if !maps {
		return nil
	}
	if h.meeting, err = h.group.meetOn(ctx, "/host", h.members); err != nil {
		return err
	}
	gather, gatherV := h.by((*board.Board).Gather), h.by((*board.Board).GatherV)
	h.onBoard = message.Within{
		Broadcast: h.by((*board.Board).Broadcast),
		Reduce:    h.by((*board.Board).Reduce),
		Gather: func(ctx context.Context, c message.Carrier, a *message.Args) error {
			if a.RecvCounts != nil {
				return gatherV(ctx, c, a)
			}
			return gather(ctx, c, a)
		},
	}
	return nil
}

// mapsAll tells whether this member maps the memory of all others on its host.
func (h *hosting) mapsAll(ctx context.Context) (bool, error) {
	if !h.group.guide.boards || len(h.members) > boardMembers {
		return false, nil
	}
	team := h.group.team
	for _, m := range h.members {
		p, err := team.Peer(ctx, team.Members[m])
		if err != nil || p.Bell() == nil {
			return false, err
		}
	}
	return true, nil
}

// agree tells whether all members of this host say yes.
func (h *hosting) agree(ctx context.Context, yes bool) (bool, error) {
	vote := []byte{0}
	if yes {
		vote[0] = 1
	}
	err := message.AllReduceRecursiveDoubling(ctx, message.NewSub(&h.group.pipes, h.members), &message.Args{
		Elem: 1, Send: vote, Recv: vote, Commutative: true,
		Combine: func(dst, left, right []byte) { dst[0] = left[0] & right[0] },
		Scratch: func(n int) []byte { return make([]byte, n) },
	})
	return vote[0] == 1, err
}

// by returns a part of a two-level algorithm that is done on this host's board.
func (h *hosting) by(do func(*board.Board, context.Context, uint64, uint64, *board.Args) error) message.Func {
	return func(ctx context.Context, _ message.Carrier, a *message.Args) error {
		g, b := h.group, &h.meeting.args
		b.Root, b.Elem, b.Send, b.Recv, b.Combine = a.Root, a.Elem, a.Send, a.Recv, a.Combine
		b.SendAt, b.RecvAt = g.placeOf(a.Send), g.placeOf(a.Recv)
		b.RecvCounts, b.RecvOffsets = a.RecvCounts, a.RecvOffsets
		err := do(h.meeting.board, ctx, g.pipes.seq, g.pipes.mark, b)
		b.Send, b.Recv, b.Combine = nil, nil, nil // the caller's
		if err != nil {
			return g.boardVerdict(ctx, g.pipes.seq, h.meeting, err)
		}
		return nil
	}
}
