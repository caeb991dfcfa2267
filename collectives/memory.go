package collectives

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// A piece is memory of this member's that others of the team read or write: a board, a
// row, a queue.
type piece struct {
	block  arena.Block
	region *fabric.Region
}

// reserve makes n bytes that others find by name. The team keeps them until it is freed.
func (g *group) reserve(ctx context.Context, name string, n int) ([]byte, error) {
	block, err := g.team.Arena().Alloc(n)
	if err != nil {
		return nil, err
	}
	region, err := g.team.Register(ctx, name, block.Memory)
	if err != nil {
		return nil, errors.Join(err, g.team.Arena().Free(block))
	}
	g.pieces = append(g.pieces, piece{block, region})
	return block.Bytes, nil
}

var _ team.Keeper = (*group)(nil)

// Leave closes the pipes, and tells which there were. Rows and boards need no farewell.
func (g *group) Leave(ctx context.Context) (card []byte, err error) {
	return g.transport.opened(), g.transport.close(ctx)
}

// Release gives back what the team kept.
func (g *group) Release(cards [][]byte) error {
	errs := []error{g.transport.release(cards)}
	for _, p := range g.pieces {
		errs = append(errs, p.region.Close(), g.team.Arena().Free(p.block))
	}
	g.pieces, g.boardGroup, g.twoLevel, g.edgeQueues, g.arena = nil, nil, nil, nil, message.Arena{}
	return errors.Join(errs...)
}
