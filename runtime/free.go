package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/fabric"
)

// Free gives back the memory that the team's calls use: that of its barrier, and what
// collectives made for messages, boards and graphs, of which it makes more with every
// algorithm and partner. Programs that make teams again and again free them. Behind
// calls that were started it waits for those. From then on the team's calls return
// [ErrTeamFreed].
//
// What the program made of the team comes first: a window that is left can be freed no
// more, and keeps its memory until the job closes, as all of a team that is broken does.
// Teams that were split from this one, and buffers, are not concerned. The world is freed
// by [Job.Close], and not by this: [ErrTeam].
//
// Kind: collective; returns when all members have called it. When it fails at some
// members, the team is broken there, and their memory stays.
func (t *Team) Free(ctx context.Context) error {
	if t != nil && t == t.job.world {
		return fmt.Errorf("%s: %w: it is the world, which Job.Close ends", fabric.FreeTeam, ErrTeam)
	}
	return t.collective(ctx, fabric.FreeTeam, func(ctx context.Context, seq uint64) error {
		if err := t.leave(ctx); err != nil {
			return err
		}
		// Not a barrier of the team's: that would have to be over before its memory goes.
		if _, err := t.exchange(ctx, seq, nil); err != nil {
			return err
		}
		return t.release()
	})
}

// leave returns when all that this rank wrote for the team's calls is where it belongs.
func (t *Team) leave(ctx context.Context) error {
	if above := t.above(); above != nil {
		if err := above.Leave(ctx); err != nil {
			return err
		}
	}
	return t.job.fabric.FlushTo(ctx, t.members)
}

// release gives the team's memory back. Nobody writes there any more.
func (t *Team) release() error {
	t.job.mu.Lock()
	delete(t.job.teams, t.name)
	t.job.mu.Unlock()
	t.breaks(&TeamError{Team: t.name, Rank: t.members[t.rank], Call: fabric.FreeTeam.String(), Reason: ErrTeamFreed})
	var err error
	if above := t.above(); above != nil {
		err = above.Release()
	}
	return errors.Join(err, t.discard())
}

// above returns what keeps memory for the team, nil where nothing does.
func (t *Team) above() fabric.Keeper {
	k, _ := t.inner.Above.Load().(fabric.Keeper)
	return k
}
