package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A hosting is what the two-level calls of a team use at a member: messages among
// hosts, and within its host a board, if all members there map each other's memory.
type hosting struct {
	group          *group
	hosts          *message.Hosts
	members        []int    // of this host, by team rank
	leaders, local topology // among hosts, and within this one
	met            bool     // they have found out whether they can have a board
	meeting        *meeting
	parts          map[message.Collective]message.Func // on the board, nil without
	call           Call                                // whose parts are chosen
	size           int                                 // of its longest buffer
}

func newHosting(g *group) *hosting {
	h := &hosting{group: g, hosts: message.NewHosts(g.team.Hosts)}
	h.members = h.hosts.Beside(g.team.Rank)
	h.leaders, h.local = oneHost(h.hosts.Count()), oneHost(len(h.members))
	h.leaders.uneven, h.local.crowded = !h.hosts.Even(), g.selector.topology.crowded
	h.hosts.Among, h.hosts.Within = h.among, h.within
	return h
}

// run makes a call in two levels.
func (h *hosting) run(ctx context.Context, c *Call, way *way, a *message.Args) error {
	if !h.met {
		if err := h.meet(ctx); err != nil {
			return err
		}
		h.met = true
	}
	h.call, h.size = *c, c.bytes(len(h.group.team.Members))
	a.Hosts = h.hosts
	err := way.Run(ctx, h.group.transport, a)
	h.call = Call{} // what it holds is the caller's
	return err
}

// among returns what is best for a part of the call among hosts.
func (h *hosting) among(part message.Collective) message.Func {
	size := h.size
	if part == message.AllToAll { // of all members of a host together
		size *= len(h.members)
	}
	return h.group.selector.ways.byRule(part, &h.call, size, h.leaders).Run
}

// within returns what is best for a part of the call on this host.
func (h *hosting) within(part message.Collective) message.Func {
	if h.meeting != nil && fitsBoard(&h.call, len(h.members)) {
		return h.parts[part]
	}
	return h.group.selector.ways.byRule(part, &h.call, h.size, h.local).Run
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
	h.group.selector.explainHost(h.group.team, len(h.members), maps)
	if !maps {
		return nil
	}
	if h.meeting, err = h.group.meetOn(ctx, "/host", h.members); err != nil {
		return err
	}
	h.parts = map[message.Collective]message.Func{
		message.Broadcast: h.by(broadcast.board),
		message.Reduce:    h.by(reduce.board),
		message.Gather:    h.byLengths(gather.board, gatherV.board),
		message.Scatter:   h.byLengths(scatter.board, scatterV.board),
		message.Scan:      h.by(scan.board),
		message.ExScan:    h.by(exScan.board),
	}
	return nil
}

// mapsAll tells whether this member maps the memory of all others on its host.
func (h *hosting) mapsAll(ctx context.Context) (bool, error) {
	if !h.group.selector.boards || len(h.members) > boardMembers {
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
	err := message.AllReduceRecursiveDoubling(ctx, message.NewSub(h.group.transport, h.members), &message.Args{
		Elem: 1, Send: vote, Recv: vote, Commutative: true,
		Combine: func(dst, left, right []byte) { dst[0] = left[0] & right[0] },
		Scratch: func(n int) []byte { return make([]byte, n) },
	})
	return vote[0] == 1, err
}

// by returns a part of a two-level algorithm that is done on this host's board.
func (h *hosting) by(do boardCall) message.Func {
	return func(ctx context.Context, _ message.Transport, a *message.Args) error {
		g, b := h.group, &h.meeting.args
		b.Root, b.Elem, b.Send, b.Recv, b.Combine, b.ByProgram = a.Root, a.Elem, a.Send, a.Recv, a.Combine, h.call.byProgram
		b.SendAt, b.RecvAt = g.placeOf(a.Send), g.placeOf(a.Recv)
		b.SendCounts, b.SendOffsets, b.RecvCounts, b.RecvOffsets = a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets
		err := do(h.meeting.board, ctx, g.key.Seq, g.key.Chain, b)
		b.Send, b.Recv, b.Combine = nil, nil, nil // the caller's
		if err != nil {
			return g.boardVerdict(ctx, h.meeting, err)
		}
		return nil
	}
}

// byLengths is by for blocks that are alike, or not.
func (h *hosting) byLengths(alike, unlike boardCall) message.Func {
	same, varied := h.by(alike), h.by(unlike)
	return func(ctx context.Context, c message.Transport, a *message.Args) error {
		if a.SendCounts != nil || a.RecvCounts != nil {
			return varied(ctx, c, a)
		}
		return same(ctx, c, a)
	}
}
