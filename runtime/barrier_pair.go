package runtime

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// pair is the round of dissemination for two members that map each other's memory. Each
// stores its flag at the other one and waits for that one's flag, at the same time. A store
// takes no locked instruction, and no member fetches a counter that the other one holds.
type pair struct {
	circle
	team   *Team
	mine   *atomic.Uint64 // the other member's flag, in this rank's memory
	theirs *atomic.Uint64 // this rank's flag at the other member; nil until it is needed
	bell   wait.Ringer    // of the other member
}

func newPair(t *Team, block arena.Block) *pair {
	return &pair{circle: line(t.rank, 2), team: t, mine: atomics.Word64(block.Bytes[roundsOffset:])}
}

// arrive stores this rank's flag. If the members have a core each, it polls the other one's for as
// long as a message takes before it waits like others.
func (b *pair) arrive(ctx context.Context, key team.Key, c team.Collective) error {
	if b.theirs == nil {
		if err := b.connect(ctx); err != nil {
			return err
		}
	}
	flag := flagOf(key, c)
	atomics.StoreRelease(b.theirs, flag) // pairs with the other member's loads below
	b.bell.Ring()                        // may overtake the store: waiters look again after pauses
	old := b.mine.Load()
	if old>>24 < key.Seq && !b.team.inner.Crowded() && wait.Glance(b.mine, old) {
		old = b.mine.Load()
	}
	if old == flag {
		return nil
	}
	if err := b.team.inner.AwaitMapped(ctx, func() bool { return b.mine.Load()>>24 >= key.Seq }); err != nil {
		return err
	}
	return compare(ctx, b.team, b.mine, key, c, 1-b.me)
}

// connect maps the flag and the bell of the other member.
func (b *pair) connect(ctx context.Context) error {
	there, err := b.resolve(ctx, b.team, 1-b.me)
	if err != nil {
		return err
	}
	b.bell, b.theirs = there.Peer.Bell(), atomics.Word64(there.Mem[roundsOffset:])
	return nil
}
