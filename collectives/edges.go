package collectives

import (
	"context"
	"strconv"

	"github.com/gopgas/gopgas/collectives/internal/board"
)

// The edgeQueues of a team carry the calls along all its graphs in mapped memory. Members
// that an edge joins have a queue each way, which they make ahead of the first such call.
type edgeQueues struct {
	queues *board.Queues
	args   board.Args
}

// onEdges makes a call along a graph in mapped memory. A staged call copies; it uses no
// slice in place.
func (g *group) onEdges(ctx context.Context, c *Call, staged bool) error {
	if c.graph.queued == nil {
		if err := g.join(g.bound.to(ctx, g.team, g.key), c.graph); err != nil {
			return err
		}
	}
	a := &g.edgeQueues.args
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
	a.Send, a.Recv = nil, nil // the caller owns them
	if err != nil {
		return g.boardVerdict(ctx, &boardGroup{members: allMembers(len(g.team.Members))}, err)
	}
	return nil
}

// join makes the missing queues along a graph's edges. All members do so in the same call,
// and the two ends of an edge miss the same queues.
func (g *group) join(ctx context.Context, graph *Graph) error {
	if g.edgeQueues == nil {
		queues, err := board.NewQueues(board.Config{Rank: g.team.Rank, Size: len(g.team.Members), Crowded: g.team.Crowded(),
			Await: g.team.AwaitMapped, View: g.view, Dead: g.dead})
		if err != nil {
			return err
		}
		g.edgeQueues = &edgeQueues{queues: queues}
	}
	from, to := g.edgeQueues.queues.Missing(graph.in, graph.out)
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
		if err := g.edgeQueues.queues.LeadFrom(m, r.Mem, r.Peer.Bell()); err != nil {
			return err
		}
	}
	var err error
	graph.queued, err = g.edgeQueues.queues.Edges(graph.in, graph.out, graph.slots)
	return err
}

// leadTo makes the queue from this member to another.
func (g *group) leadTo(ctx context.Context, member int) error {
	p, err := g.team.Peer(ctx, g.team.Members[member])
	if err != nil {
		return err
	}
	mem, err := g.reserve(ctx, g.queueTo(member), board.QueueSize(len(g.team.Members)))
	if err != nil {
		return err
	}
	return g.edgeQueues.queues.LeadTo(member, mem, p.Bell())
}

// queueTo returns the name that each member gives its queue to a member.
func (g *group) queueTo(member int) string { return g.team.Name + "/edges to " + strconv.Itoa(member) }
