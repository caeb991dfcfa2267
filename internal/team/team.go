package team

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A Team is the inner part of a team at one rank.
type Team struct {
	*fabric.Fabric
	Name    string        // unique in the job
	Rank    int           // of this process in the team
	Members []int         // world ranks by team rank
	Windows atomic.Uint64 // made so far: the same at every member
	// Openings counts how often this rank opened each end of a pipe. Package rpipe guards it.
	Openings map[string]int
	Mapped   bool  // all members use each other's memory directly
	Hosts    []int // by team rank: members of one number share a host
	Crowded  bool  // members share cores, on some host
	// Above holds the state of package collectives for the team, a [Keeper].
	Above atomic.Value
	// Whole ends when the team breaks or the job does; its cause tells which.
	Whole context.Context

	// Sync is a barrier among the team that completes no operations. All ranks
	// name the same collective.
	Sync func(ctx context.Context, c Collective) error
	// Swap is Sync, and hands everyone's bytes to everyone, by team rank. Unless it fails
	// with an [UndecidedError], it has failed at all members.
	Swap func(ctx context.Context, c Collective, mine []byte) ([][]byte, error)
	// Err returns what became of the team, nil while it is whole.
	Err func() error
	// Failed breaks the team when err says that this rank's collective call
	// ended early, and returns what the caller shall return.
	Failed func(c Collective, err error) error

	// Calls is the order of the team's collective calls.
	Calls Stream
	// Differs is for a rank that gets, in the call of this number, what belongs to
	// another call of a member's. It has the member compare, and returns how the
	// team breaks of it.
	Differs func(ctx context.Context, seq uint64, member int) error

	uses       uses
	quarantine quarantine
}

// A Keeper keeps memory for a team's calls. Both are called once, when the team is freed
// and none of its calls is under way.
type Keeper interface {
	// Leave ends this rank's writes to memory that other members keep for the team.
	// Earlier writes may still be in flight. Every member's Release gets the card.
	Leave(ctx context.Context) (card []byte, err error)
	// Release gives the memory back, when all members have left. Cards are by team rank,
	// and empty of members that had no keeper.
	Release(cards [][]byte) error
}

// Await returns nil once ready is true, or earlier what became of the team or
// the cause of ctx's end.
func (t *Team) Await(ctx context.Context, ready func() bool) error {
	return t.await(ctx, false, ready)
}

// AwaitMapped is Await for what members store in each other's memory. Those that share
// cores look a few times only before they make way: one of those that they wait for
// may need this core (8 ranks on 2 cores, 8 bytes: an exchange on a ring takes 8 us
// instead of 14, an all-to-all 8 instead of 10).
func (t *Team) AwaitMapped(ctx context.Context, ready func() bool) error {
	return t.await(ctx, t.Crowded, ready)
}

// await is Await on a core that other ranks need if shared is true.
func (t *Team) await(ctx context.Context, shared bool, ready func() bool) error {
	seen := t.Health()
	bad := t.Err()
	err := t.WaitShared(ctx, shared, func() bool {
		if bad != nil || ready() {
			return true
		}
		if now := t.Health(); now != seen {
			seen, bad = now, t.Err()
		}
		return bad != nil
	})
	if err == nil && bad != nil && ready() {
		return nil
	}
	return errors.Join(bad, err)
}
