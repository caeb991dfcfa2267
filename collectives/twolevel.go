package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A twoLevel makes the two-level calls of a team at a member. It uses messages among hosts,
// and within the host a board, if all members there map each other's memory.
type twoLevel struct {
	group          *group
	hosts          *message.Hosts
	members        []int    // on this host, by team rank
	leaders, local topology // among hosts, and within this one
	decided        bool     // the members have decided whether they can have a board
	boardGroup     *boardGroup
	parts          map[message.Collective]message.Func // on the board, nil without one
	call           Call                                // in progress; among and within choose its parts
	size           int                                 // of the longest buffer of the call
}

// newTwoLevel returns the two levels of a team on several hosts.
func newTwoLevel(g *group) *twoLevel {
	l := &twoLevel{group: g, hosts: message.NewHosts(g.team.Hosts)}
	l.members = l.hosts.Beside(g.team.Rank)
	l.leaders, l.local = leadersOf(l.hosts.Count()), oneHost(len(l.members))
	l.leaders.uneven, l.local.crowded = !l.hosts.Even(), g.selector.topology.crowded
	l.hosts.Among, l.hosts.Within = l.among, l.within
	return l
}

// run makes a call in two levels.
func (l *twoLevel) run(ctx context.Context, c *Call, way *way, a *message.Args) error {
	if !l.decided {
		if err := l.connect(ctx); err != nil {
			return err
		}
		l.decided = true
	}
	l.call, l.size = *c, c.bytes(len(l.group.team.Members))
	a.Hosts = l.hosts
	err := way.Run(ctx, l.group.transport, a)
	l.call = Call{} // the caller owns its slices
	return err
}

// among returns the best algorithm for a part of the call among hosts.
func (l *twoLevel) among(part message.Collective) message.Func {
	size := l.size
	if part == message.AllToAll { // all members of a host together
		size *= len(l.members)
	}
	return l.group.selector.ways.byRule(part, &l.call, size, l.leaders).Run
}

// within returns the best algorithm for a part of the call on this host.
func (l *twoLevel) within(part message.Collective) message.Func {
	if l.boardGroup != nil && fitsBoard(&l.call, len(l.members)) {
		return l.parts[part]
	}
	return l.group.selector.ways.byRule(part, &l.call, l.size, l.local).Run
}

// connect makes a board for the members of this host if they can have one. All of them
// do so in the same call.
func (l *twoLevel) connect(ctx context.Context) error {
	if len(l.members) == 1 {
		return nil
	}
	maps, err := l.mapsAll(ctx)
	if err != nil {
		return err
	}
	if maps, err = l.agree(ctx, maps); err != nil {
		return err
	}
	l.group.selector.explainHost(l.group.team, len(l.members), maps)
	if !maps {
		return nil
	}
	if l.boardGroup, err = l.group.newBoardGroup("/host", l.members); err != nil {
		return err
	}
	l.parts = map[message.Collective]message.Func{
		message.Broadcast: l.by(broadcast.board),
		message.Reduce:    l.by(reduce.board),
		message.Gather:    l.byLengths(gather.board, gatherV.board),
		message.Scatter:   l.byLengths(scatter.board, scatterV.board),
		message.Scan:      l.by(scan.board),
		message.ExScan:    l.by(exScan.board),
	}
	return nil
}

// mapsAll reports whether this member maps the memory of all other members on its host.
func (l *twoLevel) mapsAll(ctx context.Context) (bool, error) {
	team := l.group.team
	if !l.group.selector.boards || team.Mapped || len(l.members) > boardMembers { // if Mapped, the team has a board
		return false, nil
	}
	for _, m := range l.members {
		p, err := team.Peer(ctx, team.Members[m])
		if err != nil || p.Bell() == nil {
			return false, err
		}
	}
	return true, nil
}

// agree reports whether all members of this host vote yes.
func (l *twoLevel) agree(ctx context.Context, yes bool) (bool, error) {
	vote := []byte{0}
	if yes {
		vote[0] = 1
	}
	err := message.AllReduceRecursiveDoubling(ctx, message.NewSub(l.group.transport, l.members), &message.Args{
		Elem: 1, Send: vote, Recv: vote, Commutative: true,
		Combine: func(dst, left, right []byte) { dst[0] = left[0] & right[0] },
		Scratch: func(n int) []byte { return make([]byte, n) },
	})
	return vote[0] == 1, err
}

// by returns the function for a part of a two-level algorithm on this host's board.
func (l *twoLevel) by(do boardCall) message.Func {
	return func(ctx context.Context, _ message.Transport, a *message.Args) error {
		g, b := l.group, &l.boardGroup.args
		b.Root, b.Elem, b.Send, b.Recv, b.Combine = a.Root, a.Elem, a.Send, a.Recv, a.Combine
		b.ByProgram, b.Single = l.call.byProgram, l.call.single
		b.SendAt, b.RecvAt = g.placeOf(a.Send), g.placeOf(a.Recv)
		b.SendCounts, b.SendOffsets, b.RecvCounts, b.RecvOffsets = a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets
		err := do(l.boardGroup.board, ctx, g.key.Seq, g.key.Chain, b)
		b.Send, b.Recv, b.Combine = nil, nil, nil // the caller owns them
		if err != nil {
			return g.boardVerdict(ctx, l.boardGroup, err)
		}
		return nil
	}
}

// byLengths returns the function for a part whose blocks have one length or several.
func (l *twoLevel) byLengths(alike, unlike boardCall) message.Func {
	same, varied := l.by(alike), l.by(unlike)
	return func(ctx context.Context, c message.Transport, a *message.Args) error {
		if a.SendCounts != nil || a.RecvCounts != nil {
			return varied(ctx, c, a)
		}
		return same(ctx, c, a)
	}
}
