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
	if err != nil {
		return arena.Block{}, errors.Join(err, g.team.Arena().Free(block))
	}
	g.pieces = append(g.pieces, piece{block, region})
	return block, nil
}

var _ team.Keeper = (*group)(nil)

// Release frees the memory that the team kept.
func (g *group) Release() error {
	errs := []error{g.transport.close()}
	for _, p := range g.pieces {
		errs = append(errs, p.region.Close(), g.team.Arena().Free(p.block))
	}
	g.pieces, g.boardGroup, g.twoLevel, g.edgeQueues, g.arena = nil, nil, nil, nil, message.Arena{}
	return errors.Join(errs...)
}
