package collectives

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// A piece is memory of this member that other members read or write: a board, a queue, an
// endpoint of channels.
type piece struct {
	block  arena.Block
	region *fabric.Region
}

// reserve makes n bytes that other members find by name. The team keeps them until Free.
func (g *group) reserve(ctx context.Context, name string, n int) ([]byte, error) {
	block, err := g.reservePart(ctx, name, n, n)
	return block.Bytes, err
}

// reservePart is reserve for a block of which the first now bytes occupy memory.
func (g *group) reservePart(ctx context.Context, name string, n, now int) (arena.Block, error) {
	block, err := g.team.Arena().AllocPart(n, now)
	if err != nil {
		return arena.Block{}, err
	}
	region, err := g.team.Register(ctx, name, block.Memory)
	return block, g.keep(block, region, err)
}

// reserveFor is reservePart for memory that one member alone writes. The rest occupies memory from that
// member's first writes on, or at once.
func (g *group) reserveFor(ctx context.Context, member int, name string, n, now int) ([]byte, error) {
	block, err := g.team.Arena().AllocOnDemand(n, now)
	if err != nil {
		return nil, err
	}
	block.Demand.Commit = g.shortage.Watch(block.Demand.Commit)
	region, err := g.team.RegisterFor(ctx, g.team.Members[member], name, block.Memory)
	return block.Bytes, g.keep(block, region, err)
}

// keep has the team keep a block and its region. It frees the block if err says that there is none.
func (g *group) keep(block arena.Block, region *fabric.Region, err error) error {
	if err != nil {
		return errors.Join(err, g.team.Arena().Free(block))
	}
	g.pieces = append(g.pieces, piece{block, region})
	return nil
}

var _ team.Keeper = (*group)(nil)

// Written returns the members with which this one has a channel: no other memory is written by requests.
func (g *group) Written() (members []int) {
	if g.transport == nil {
		return nil
	}
	for m, end := range g.transport.ends {
		if end != nil {
			members = append(members, m)
		}
	}
	return members
}

// Release frees the memory that the team kept.
func (g *group) Release() error {
	g.bound.end()
	var errs []error
	if g.transport != nil {
		errs = append(errs, g.transport.close())
	}
	for _, p := range g.pieces {
		giveBack := g.team.GiveBack
		if p.block.Demand.Commit != nil { // the next team has channels, too
			giveBack = g.team.GiveBackKept
		}
		errs = append(errs, giveBack(p.region, p.block))
	}
	g.pieces, g.boardGroup, g.twoLevel, g.edgeQueues, g.arena = nil, nil, nil, nil, message.Arena{}
	return errors.Join(errs...)
}
