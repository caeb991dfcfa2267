package runtime

import (
	"context"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
)

// A barrier lets a team's members pass together.
type barrier interface {
	// arrive returns when all members have arrived with the same number and the
	// same collective, or with a *MismatchError. It finds calls before that differed,
	// too, where nobody had to wait for the other.
	arrive(ctx context.Context, seq uint64, c fabric.Collective) error
}

// The layout of a team's barrier memory at each member, in bytes. Words that
// different ranks write lie in cache lines of their own.
const (
	lineSize = 64
	// arriveOffset and releaseOffset belong to the central barrier of the
	// team's first member.
	arriveOffset  = 0
	releaseOffset = lineSize
	// releaseOffset is the word of the member above in the tree barrier, too.
	// roundsOffset: one word for each round of the dissemination barrier, or for
	// each member below in the tree barrier.
	roundsOffset = 2 * lineSize
	maxRounds    = 32
	barrierSize  = roundsOffset + maxRounds*lineSize
)

// newBarrier picks the algorithm: members that map each other's memory count
// in one place, others pass messages, the fewest where messages take turns at cores.
func newBarrier(t *Team, block arena.Block) barrier {
	switch {
	case len(t.members) == 1:
		return alone{}
	case t.inner.Mapped:
		return &central{team: t}
	case t.inner.Crowded:
		return &tree{team: t, mem: block.Bytes}
	}
	return &dissemination{team: t, mem: block.Bytes, partners: make([]*fabric.Remote, maxRounds)}
}

// alone is the barrier of a team of one.
type alone struct{}

func (alone) arrive(context.Context, uint64, fabric.Collective) error { return nil }
