package collectives

import (
	"context"

	"github.com/gopgas/gopgas/internal/team"
)

// NeighborAllGather sends in along every edge out of this member, and fills block i
// of out from edge i in. All blocks have one length. in and out are apart. Kind:
// collective; returns when out is complete, and in may be changed.
func NeighborAllGather[T any](ctx context.Context, g *Graph, in, out []T, opts ...Option) error {
	c := NeighborAllGatherCall(g, in, out, opts...)
	return run(ctx, g.team(), &c)
}

// NeighborAllGatherCall returns the call of [NeighborAllGather]. Kind: local.
func NeighborAllGatherCall[T any](g *Graph, in, out []T, opts ...Option) Call {
	var c Call
	fill(&c, neighborAllGather, 0, len(in), in, out, opts)
	c.along(g)
	return c
}

// NeighborAllGatherV is [NeighborAllGather] with blocks of different lengths: from says where
// those from the edges in go. Kind: collective; completes as that call does.
func NeighborAllGatherV[T any](ctx context.Context, g *Graph, in, out []T, from Blocks, opts ...Option) error {
	c := NeighborAllGatherVCall(g, in, out, from, opts...)
	return run(ctx, g.team(), &c)
}

// NeighborAllGatherVCall returns the call of [NeighborAllGatherV]. Kind: local.
func NeighborAllGatherVCall[T any](g *Graph, in, out []T, from Blocks, opts ...Option) Call {
	var c Call
	fill(&c, neighborAllGatherV, 0, team.Varied, in, out, opts)
	c.recvBlocks = from
	c.along(g)
	return c
}

// NeighborAllToAll sends block i of in along edge i out of this member, and fills
// block i of out from edge i in. All blocks have one length. in and out are apart. Kind:
// collective; returns when out is complete, and in may be changed.
func NeighborAllToAll[T any](ctx context.Context, g *Graph, in, out []T, opts ...Option) error {
	c := NeighborAllToAllCall(g, in, out, opts...)
	return run(ctx, g.team(), &c)
}

// NeighborAllToAllCall returns the call of [NeighborAllToAll]. Kind: local.
func NeighborAllToAllCall[T any](g *Graph, in, out []T, opts ...Option) Call {
	var c Call
	fill(&c, neighborAllToAll, 0, team.Varied, in, out, opts)
	c.along(g)
	return c
}

// NeighborAllToAllV is [NeighborAllToAll] with blocks of different lengths. Both ends of an edge
// give the same length. Kind: collective; completes as that call does.
func NeighborAllToAllV[T any](ctx context.Context, g *Graph, in []T, to Blocks, out []T, from Blocks, opts ...Option) error {
	c := NeighborAllToAllVCall(g, in, to, out, from, opts...)
	return run(ctx, g.team(), &c)
}

// NeighborAllToAllVCall returns the call of [NeighborAllToAllV]. Kind: local.
func NeighborAllToAllVCall[T any](g *Graph, in []T, to Blocks, out []T, from Blocks, opts ...Option) Call {
	var c Call
	fill(&c, neighborAllToAllV, 0, team.Varied, in, out, opts)
	c.sendBlocks, c.recvBlocks = to, from
	c.along(g)
	return c
}

// along has the call follow a graph's edges, which members compare by number.
func (c *Call) along(g *Graph) {
	if g != nil {
		c.graph, c.op = g, g.label
	}
}

// checkNeighbors checks a call along a graph's edges.
func (c *Call) checkNeighbors() error {
	g := c.graph
	ins, outs, send, recv := len(g.in), len(g.out), c.elements(c.send), c.elements(c.recv)
	if err := c.checkApart(); err != nil {
		return err
	}
	switch c.of {
	case neighborAllGather:
		if recv != ins*send {
			return lengthError("output", recv, ins*send)
		}
	case neighborAllToAll:
		if each := max(send/max(outs, 1), recv/max(ins, 1)); send != outs*each || recv != ins*each {
			return lengthError("output", recv, ins*each)
		}
	case neighborAllToAllV:
		if err := c.sendBlocks.check("input", send, outs); err != nil {
			return err
		}
		return c.checkArriving(recv, ins)
	default:
		return c.checkArriving(recv, ins)
	}
	return nil
}

// checkArriving checks the blocks that come along edges in, of which those from this
// member itself are as long as it sends them.
func (c *Call) checkArriving(recv, ins int) error {
	if err := c.recvBlocks.check("output", recv, ins); err != nil {
		return err
	}
	for _, l := range c.graph.loops {
		to := c.elements(c.send)
		if c.of == neighborAllToAllV {
			to = c.sendBlocks.Counts[l.out]
		}
		if from := c.recvBlocks.Counts[l.in]; to != from {
			return loopError(to, from)
		}
	}
	return nil
}
