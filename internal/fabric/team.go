package fabric

import (
	"context"
	"errors"
	"sync/atomic"
)

// A Collective names a call that all ranks of a team make together. The calls
// carry it, so that ranks which make different ones find out.
type Collective uint8

const (
	Barrier Collective = iota + 1
	Fence
	Exchange
	Split
	Allocate
	Free
	Close
)

var collectiveNames = [...]string{"nothing", "Barrier", "Fence", "Exchange", "Split", "Allocate", "Free", "Close"}

func (c Collective) String() string {
	if int(c) < len(collectiveNames) {
		return collectiveNames[c]
	}
	return "unknown collective"
}

// A Team is what runtime shows of a team to the packages between it and the
// fabric.
type Team struct {
	*Fabric
	Name    string        // unique in the job
	Rank    int           // of this process in the team
	Members []int         // world ranks by team rank
	Windows atomic.Uint64 // made so far: the same at every member

	// Sync is a barrier among the team that completes no operations. All ranks
	// name the same collective.
	Sync func(ctx context.Context, c Collective) error
	// Swap is Sync, and hands everyone's bytes to everyone, by team rank.
	Swap func(ctx context.Context, c Collective, mine []byte) ([][]byte, error)
	// Err returns what became of the team, nil while it is whole.
	Err func() error
	// Failed breaks the team when err says that this rank's collective call
	// ended early, and returns what the caller shall return.
	Failed func(c Collective, err error) error
}

// Await returns nil once ready is true, or earlier what became of the team or
// the cause of ctx's end.
func (t *Team) Await(ctx context.Context, ready func() bool) error {
	seen := t.Health()
	bad := t.Err()
	err := t.Wait(ctx, func() bool {
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
