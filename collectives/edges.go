package collectives

import (
	"context"
	"strconv"

	"github.com/gopgas/gopgas/collectives/internal/board"
)

// A crossing is what the calls along all graphs of a team use in mapped memory: a
// queue each way between members that an edge joins, made ahead of the first such
// call.
type crossing struct {
	queues *board.Queues
	args   board.Args
}

// onEdges makes a call along a graph in mapped memory, by copies only if it shall be
// staged.
func (g *group) onEdges(ctx context.Context, c *Call, staged bool) error {
	if c.graph.queued == nil {
		if err := g.join(g.bound.to(ctx, g.team), c.graph); err != nil {
			return err
		}
	}
	a := &g.crossing.args
	a.Send, a.Recv, a.SendAt = c.send, c.recv, board.Place{}
	if !staged {
		a.SendAt = g.placeOf(c.send)
	}
	a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets = nil, nil, nil, nil
	if c.of.is(varied) {
		l := &g.layout
		l.recvCounts, l.recvOffsets = c.recvBlocks.bytes(c.size, l.recvCounts, l.recvOffsets)
		a.RecvCounts, a.RecvOffsets = l.recvCounts, l.recvOffsets
		if c.of == neighborAllToAllV {
			l.sendCounts, l.sendOffsets = c.sendBlocks.bytes(c.size, l.sendCounts, l.sendOffsets)
			a.SendCounts, a.SendOffsets = l.sendCounts, l.sendOffsets
		}
	}
	err := c.of.edges(c.graph.queued, ctx, g.key.Seq, g.key.Chain, a)
	a.Send, a.Recv = nil, nil // the caller's
	if err != nil {
		return g.boardVerdict(ctx, &boardGroup{members: allMembers(len(g.team.Members))}, err)
	}
	return nil
}

// join makes the queues along a graph's edges that there are not yet. All members
// come here in the same call, and those at the ends of an edge lack the same.
func (g *group) join(ctx context.Context, graph *Graph) error {
	if g.crossing == nil {
		queues, err := board.NewQueues(board.Config{Rank: g.team.Rank, Size: len(g.team.Members), Crowded: g.team.Crowded,
			Await: g.team.AwaitMapped, View: g.view, Dead: g.dead})
		if err != nil {
			return err
		}
		g.crossing = &crossing{queues: queues}
	}
	from, to := g.crossing.queues.Missing(graph.in, graph.out)
	for _, m := range to {
		if err := g.leadTo(ctx, m); err != nil {
			return err
		}
	}
	for _, m := range from {
		r, err := g.team.AwaitRegion(ctx, g.team.Members[m], g.queueTo(g.team.Rank))
		if err != nil {
			return err
		}
		if err := g.crossing.queues.LeadFrom(m, r.Mem, r.Peer.Bell()); err != nil {
			return err
		}
	}
	var err error
	graph.queued, err = g.crossing.queues.Edges(graph.in, graph.out, graph.slots)
	return err
}

// leadTo makes the queue to a member.
func (g *group) leadTo(ctx context.Context, member int) error {
	p, err := g.team.Peer(ctx, g.team.Members[member])
	if err != nil {
		return err
	}
	mem, err := g.reserve(ctx, g.queueTo(member), board.QueueSize(len(g.team.Members)))
	if err != nil {
		return err
	}
	return g.crossing.queues.LeadTo(member, mem, p.Bell())
}

// queueTo is the name of each member's queue to a member.
func (g *group) queueTo(member int) string { return g.team.Name + "/edges to " + strconv.Itoa(member) }
