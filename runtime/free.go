package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// Free gives back the memory of the team's calls: its barrier, and the messages, boards
// and graphs of collectives. Collectives allocates more with every algorithm and
// partner. A program that makes many teams must free them. Free first waits for calls
// that were started. From then on the team's calls return [ErrTeamFreed].
//
// A broken team is freed in the same way, if all its members live. A member that had not
// learned of the failure gets that error from Free. Free frees the team all the same. A
// broken team cannot break again: if a living member never calls Free, or gives up, the
// other members wait until their ctx ends.
//
// Free also gives back quarantined memory. An Allocate or a Split quarantines memory if
// it ends early at this rank but may have completed at other members. A window does so if
// its Free fails. Such memory stays until the job closes if a member still has the window
// open. So does that of a Split if a member may be in a call of the new team, and all memory that a
// stopped process may still write.
//
// Free the team's windows first: a window that is left cannot be freed any more, and
// keeps its memory until the job closes. Free does not affect teams that were split
// from this one, or buffers. [Job.Close] frees the world; Free returns [ErrTeam] for
// it.
//
// Kind: collective; returns when all members have called it. It fails if ctx ends, or a
// member is dead or makes another call. Then the team is broken, and its memory stays at
// this rank. Other members may have freed theirs: those that have met do not wait for one
// that gives up.
func (t *Team) Free(ctx context.Context) error {
	if t != nil && t == t.job.world {
		return fmt.Errorf("%s: %w: it is the world, which Job.Close ends", team.FreeTeam, ErrTeam)
	}
	known := t != nil && t.broken.Load() != nil
	err := t.collectiveBehind(ctx, team.FreeTeam, t.flushUntold, t.free)
	if !brokenBefore(err) {
		return err
	}
	if bad := t.freeBroken(ctx); bad != nil || known {
		return bad
	}
	return err
}

// flush returns when all writes of this rank for the team's calls are complete.
func (t *Team) flush(ctx context.Context) error { return t.job.fabric.FlushTo(ctx, t.members) }

// flushUntold flushes this rank's writes for the team's calls ahead of a barrier. It leaves out the members to which
// flags of that barrier go: these are behind all writes. Requests of other teams and windows to the members may stay
// under way.
func (t *Team) flushUntold(ctx context.Context) error {
	told, _ := t.told()
	written := slices.Clone(told)
	if above := t.above(); above != nil {
		for _, m := range above.Written() {
			if rank := t.members[m]; !slices.Contains(told, rank) {
				written = append(written, rank)
			}
		}
	}
	return t.flushWithin(ctx, written, told)
}

// flushSilent flushes the flags of a barrier behind it. It leaves out the members that have answered the flags of
// this rank. It fails if another one of those that get flags refused a request ahead of its flag, and so may wait.
func (t *Team) flushSilent(ctx context.Context) error {
	told, answered := t.told()
	silent := told[:len(told)-answered]
	// Members get their flags even if this rank ends behind its Free. One that is gone waits no more.
	_ = t.flushWithin(ctx, silent, nil)
	return t.job.fabric.Refusal(func() []int { return silent })
}

// flushWithin flushes the peers that [fabric.Fabric.Unflushed] returns, and ends with the team. It makes no context where it does not wait.
func (t *Team) flushWithin(ctx context.Context, ranks, told []int) error {
	f := t.job.fabric
	if !f.FlushMayWait() {
		return f.FlushMapped(t.members)
	}
	peers := f.Unflushed(ranks, told)
	if len(peers) == 0 {
		return nil
	}
	return t.within(ctx, func(ctx context.Context) error { return fabric.Flush(ctx, peers) })
}

// told is that of the team's barrier. It returns none for a barrier that is not telling.
func (t *Team) told() (ranks []int, answered int) {
	if b, ok := t.barrier.(telling); ok {
		return b.told()
	}
	return nil, 0
}

// allTold is told for those that do not care for answers.
func (t *Team) allTold() []int {
	ranks, _ := t.told()
	return ranks
}

// free gives the team's memory back at a member that has met all others. Each of them had
// ended its calls, and its writes are applied. So no member uses this memory any more, apart from
// that of the barrier. No call has quarantined memory in the team: one that does breaks the team.
func (t *Team) free(ctx context.Context, _ team.Key) error {
	mutant.Hesitate(mutant.Call)
	if b, ok := t.barrier.(departing); ok {
		if err := b.depart(ctx); err != nil {
			return err
		}
	}
	if err := t.flushSilent(ctx); err != nil {
		return err
	}
	mutant.Hesitate(mutant.Call)
	return t.release(nil) // no context waits for the end of the team: that would start a goroutine
}

// A freeCard goes from each member to all when they free a broken team.
type freeCard struct {
	Uses []string `json:",omitempty"` // names of other members' memory that this rank may still use
}

// brokenBefore reports whether Free failed because of an earlier call, so that all
// members will free the broken team.
func brokenBefore(err error) bool {
	var m *MismatchError
	var e *TeamError
	free := team.FreeTeam.String()
	switch {
	case errors.As(err, &m):
		return m.Call != free && m.OtherDid != free
	case errors.As(err, &e):
		return e.Call != free
	}
	return false
}

// freeBroken frees a broken team by exchanges through the launcher: its barrier serves no
// more. Its calls have ended or are about to end.
func (t *Team) freeBroken(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if err := t.stream.awaitIdle(ctx); err != nil {
		return err
	}
	exchange := func(step string, mine []byte) ([][]byte, error) {
		mutant.Hesitate(mutant.Call)
		all, err := t.job.client.Exchange(ctx, t.name+"/"+step, t.members, mine)
		return all, explain(err)
	}
	// Until all members have arrived, some may still be in a call of the team. They do not
	// know yet which teams they use.
	if _, err := exchange("free", nil); err != nil {
		return err
	}
	mine, err := json.Marshal(freeCard{Uses: append(t.inner.InUse(), t.splits()...)})
	if err != nil {
		return err
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	texts, err := exchange("freed", mine)
	if err != nil {
		return err
	}
	var used []string
	for i, text := range texts {
		var card freeCard
		if err := json.Unmarshal(text, &card); err != nil {
			return fmt.Errorf("team %s: card of rank %d: %w", t.name, t.members[i], err)
		}
		used = append(used, card.Uses...)
	}
	return t.release(used)
}

// splits returns the names of the barrier memory of teams split from this one. It omits
// broken teams if this rank is in none of their calls.
func (t *Team) splits() (names []string) {
	t.job.mu.Lock()
	all := slices.Collect(maps.Values(t.job.teams))
	t.job.mu.Unlock()
	for _, s := range all {
		if strings.HasPrefix(s.name, t.name+".") && (s.broken.Load() == nil || !s.stream.idle()) {
			names = append(names, s.region())
		}
	}
	return names
}

// release gives the team's memory back, apart from quarantined regions in used. Precondition:
// no member writes there any more.
func (t *Team) release(used []string) error {
	t.job.mu.Lock()
	delete(t.job.teams, t.name)
	t.job.mu.Unlock()
	t.stream.unattended()
	t.broken.Store(&TeamError{Team: t.name, Rank: t.members[t.rank], Call: team.FreeTeam.String(), Reason: ErrTeamFreed})
	var err error
	if above := t.above(); above != nil {
		err = above.Release()
	}
	return errors.Join(err, t.inner.ReleaseQuarantined(used), t.discard())
}

// above returns the keeper of memory for the team, nil if there is none.
func (t *Team) above() team.Keeper {
	k, _ := t.inner.Above.Load().(team.Keeper)
	return k
}
