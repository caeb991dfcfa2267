package runtime_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// TestSplitTakesAnyColorsAndKeys also those that fit in no word. No rank gives such, or rank 0, or all.
func TestSplitTakesAnyColorsAndKeys(t *testing.T) {
	testjob.Each(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for _, wide := range []int{0, 1, r.N} {
				color, key := 5, -r.Me
				if r.Me < wide {
					color, key = math.MaxInt, math.MinInt+r.N-r.Me
				}
				team, err := r.World.Split(ctx, color, key)
				r.NoError(err)
				first, last := wide, r.N-1 // of this rank's team
				if r.Me < wide {
					first, last = 0, wide-1
				}
				r.Equal(last-first+1, team.Size())
				r.Equal(last-r.Me, team.Rank(), "the larger rank has the smaller key")
				none, err := team.Split(ctx, math.MinInt, 0)
				r.NoError(err)
				r.Nil(none)
				r.NoError(team.Free(ctx))
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// TestSplitsInARowReadTheirOwnChoices though some members begin the next one while others still read.
func TestSplitsInARowReadTheirOwnChoices(t *testing.T) {
	testjob.Each(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for i := range 30 {
				apart := i % r.N // this member alone has another color
				color := i
				if r.Me == apart {
					color = -1
				}
				team, err := r.World.Split(ctx, color, r.N-r.Me)
				r.NoError(err)
				r.Equal(r.Me == apart, team == nil)
				if team != nil {
					r.Equal(r.N-1, team.Size())
					_, err = r.World.Translate(apart, team)
					r.ErrorIs(err, runtime.ErrTeam)
				}
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// TestSplitFailsAtAllMembersIfOneHeapIsExhausted and tells the others why.
func TestSplitFailsAtAllMembersIfOneHeapIsExhausted(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			half, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			if r.Me == 0 {
				for n := 1 << 40; n > 0; n /= 2 {
					for err = nil; err == nil; {
						_, err = arenaOf(r.Job).AllocPart(n, 0)
					}
				}
			}
			_, err = half.Split(ctx, 0, 0)
			r.ErrorContains(err, "raise GRUN_HEAP")
			if r.Me == 0 {
				r.ErrorIs(err, runtime.ErrExhausted)
			} else {
				r.ErrorContains(err, "rank 0")
			}
			r.ErrorIs(half.Barrier(ctx), runtime.ErrTeamBroken)
			if !team.OutcomeUnknown(err) { // a member that failed first may end the exchange of this one
				r.Zero(arenaOf(r.Job).Quarantined())
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// TestSplitInMappedMemoryMakesNoExchange has a gate catch the launcher's messages to rank 0 about exchanges of
// the team. Members that do not map each other's memory make one.
func TestSplitInMappedMemoryMakesNoExchange(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		gate := &runtime.Gate{}
		require.NoError(t, testjob.RunBy(t.Context(), behind(gate, c), func(ctx context.Context, job *runtime.Job) error {
			whole, err := job.World().Split(ctx, 0, 0)
			if err != nil || job.World().Rank() != 0 || !team.Of(whole).Mapped {
				if err == nil {
					_, err = whole.Split(ctx, 0, 0)
				}
				return err
			}
			caught := gate.Hold(whole.Name() + "/")
			calls := runtime.CallsOf(job)
			over, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			go func() {
				select {
				case <-caught:
					cancel(errors.New("Split made an exchange"))
				case <-over.Done():
				}
			}()
			_, err = whole.Split(over, 0, 0)
			require.Equal(t, calls, runtime.CallsOf(job))
			return err
		}))
	})
}

// TestSplitReleasesMembersBelowOneThatGaveUp in a tree, where rank 1 passes the flag of rank 0 on to the last
// rank. Rank 0 has passed the barrier, so all get the team.
func TestSplitReleasesMembersBelowOneThatGaveUp(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: runtime.TreeArity + 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		runtime.MeetInTree(r.World)
		over, cancel := context.WithCancel(ctx)
		defer cancel()
		if r.Me == 1 {
			runtime.GiveUpRelease(r.World, cancel)
		}
		team, err := r.World.Split(over, 0, -r.Me)
		r.NoError(err)
		r.Equal(r.N-1-r.Me, team.Rank())
		r.NoError(team.Barrier(ctx))
		r.NoError(r.World.Barrier(ctx))
	})
}

// TestSplitEndsIfAMemberGaveUpBehindOthers that have all choices and wait for it, to find whether they map
// each other's memory. The launcher's answer to rank 0 is held back.
func TestSplitEndsIfAMemberGaveUpBehindOthers(t *testing.T) {
	c := testjob.Config{Provider: "loop,tcp", Ranks: 3, Hosts: "aab"}
	gate := &runtime.Gate{}
	require.NoError(t, testjob.RunBy(t.Context(), behind(gate, c), func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		whole, err := world.Split(ctx, 0, 0)
		if err != nil {
			return err
		}
		over, cancel := context.WithCancel(ctx)
		defer cancel()
		want := runtime.ErrTeamBroken
		if world.Rank() == 0 {
			want = context.Canceled
			caught := gate.Hold(whole.Name() + "/")
			go func() {
				defer cancel()
				select {
				case <-caught:
				case <-over.Done():
				}
			}()
		}
		if _, err = whole.SplitHost(over); world.Rank() < 2 { // rank 2 is alone on its host
			require.ErrorIs(t, err, want)
		}
		if world.Rank() == 0 {
			gate.Open()
		}
		return world.Barrier(ctx)
	}))
}
