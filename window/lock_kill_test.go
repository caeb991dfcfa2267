package window_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A place is where a rank is killed that uses a lock.
type place uint8

const (
	waiting place = iota
	holding
	handed // it has the lock, and does not know yet
)

// kills are deaths of ranks that use the lock of rank 0. Each case has a team of its own: rank 0, which
// holds the lock first unless the victim does; rank 1, which waits for an exclusive lock; rank 2, which
// waits for a shared one; and the victim.
var kills = []struct {
	place  place
	victim window.Mode // that it waits for or holds
	first  window.Mode // that rank 0 holds
	order  []int       // in which ranks begin to wait
	lucky  bool        // rank 2 may get its lock before it knows of the death
}{
	{waiting, window.Exclusive, window.Exclusive, []int{1, victim, 2}, false},
	{waiting, window.Shared, window.Exclusive, []int{2, victim, 1}, false},
	{waiting, window.Exclusive, window.Exclusive, []int{1, 2, victim}, false},
	{waiting, window.Exclusive, window.Shared, []int{victim, 2, 1}, true},
	{holding, window.Exclusive, 0, []int{1, 2}, false},
	{holding, window.Shared, 0, []int{1, 2}, true},
	{handed, window.Exclusive, window.Shared, []int{victim, 1, 2}, false},
	{handed, window.Shared, window.Exclusive, []int{1, victim, 2}, true},
}

// victim is the rank that dies, in the team of its case.
const victim = 3

// pidOfVictim is met at rank 0 once the victim is at its place, or about to go there.
var pidOfVictim = window.Elements[int64]{At: []int{1}, Condition: window.NotEqual}

// TestKillsOfRanksThatUseALock kills processes at each place of a lock's queue.
func TestKillsOfRanksThatUseALock(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector looks at one process")
	}
	for _, provider := range []string{"shm", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			out := testjob.Job{Provider: provider, Ranks: victim + len(kills)}.Try(t, "lockers die")
			require.Len(t, out.Failures, len(kills), "%s\n%s", out.Summary(), out.Output)
			for _, f := range out.Failures {
				require.GreaterOrEqual(t, f.Rank, victim, out.Output)
				require.Equal(t, unix.SIGKILL, f.Signal, out.Output)
			}
		})
	}
}

// lockersDie runs all cases, one after the other.
func lockersDie(ctx context.Context, r *testjob.Rank) {
	survives := r.Me < victim
	survivors, err := r.World.Split(ctx, color(survives), 0)
	r.NoError(err)
	windows := make([]*window.Window[int64], len(kills))
	for i := range kills {
		mine := survives || r.Me == victim+i
		team, err := r.World.Split(ctx, color(mine), 0)
		r.NoError(err)
		if mine {
			windows[i], err = window.Allocate[int64](ctx, team, 2)
			r.NoError(err)
		}
	}
	if survives { // no rank dies before all are here
		if r.Me == 0 {
			for _, w := range windows {
				_, _, err = window.WaitUntil(ctx, w, pidOfVictim)
				r.NoError(err)
			}
		}
		r.NoError(survivors.Barrier(ctx))
	}
	for i := range kills {
		k := lockKill{Rank: r, w: windows[i], n: i, survivors: survivors}
		if k.w == nil {
			continue
		}
		if !survives {
			k.die(ctx)
		}
		k.survive(ctx)
	}
}

func color(mine bool) int {
	if mine {
		return 1
	}
	return 0
}

// A lockKill is a case at one rank.
type lockKill struct {
	*testjob.Rank
	w         *window.Window[int64]
	n         int
	survivors *runtime.Team
}

// goes waits until rank 0 says that it is this rank's turn.
func (k *lockKill) goes(ctx context.Context) {
	_, _, err := window.WaitUntil(ctx, k.w, window.Elements[int64]{At: []int{0}, Value: 1})
	k.NoError(err)
}

// die takes the victim to its place, where rank 0 kills it.
func (k *lockKill) die(ctx context.Context) {
	c := &kills[k.n]
	if c.place == holding {
		_, err := k.w.Lock(ctx, 0, c.victim)
		k.NoError(err)
	}
	k.NoError(window.AtomicStore(ctx, k.w, 0, 1, int64(os.Getpid())))
	if c.place != holding {
		k.goes(ctx)
		_, _ = k.w.Lock(ctx, 0, c.victim)
	}
	<-ctx.Done()
}

// survive has the survivors lock, wait, and see the death. They lose the lock only if the victim had it.
func (k *lockKill) survive(ctx context.Context) {
	c, start, dies := &kills[k.n], time.Now(), victim+k.n
	var first window.Held
	switch k.Me {
	case 0:
		first = k.first(ctx)
	case 1:
		k.goes(ctx)
		_, err := k.w.Lock(ctx, 0, window.Exclusive)
		dead(k.Rank, err, start, dies)
	case 2:
		k.goes(ctx)
		held, err := k.w.Lock(ctx, 0, window.Shared)
		if c.lucky && err == nil {
			k.NoError(held.Unlock(ctx))
		} else {
			dead(k.Rank, err, start, dies)
		}
	}
	k.NoError(k.survivors.Barrier(ctx), "%+v", c)
	if k.Me == 0 && c.place == waiting {
		k.NoError(first.Unlock(ctx))
	}
	k.NoError(k.survivors.Barrier(ctx))
	had := c.place != waiting
	for rank := range victim {
		if k.Me == rank {
			k.check(ctx, window.Exclusive, had)
			k.check(ctx, window.Shared, had && c.victim == window.Exclusive)
		}
		k.NoError(k.survivors.Barrier(ctx))
	}
}

// check takes and leaves the lock, unless it is lost. A rank that gave up may give the lock back only now.
func (k *lockKill) check(ctx context.Context, m window.Mode, lost bool) {
	start := time.Now()
	k.NoError(repeatUntil(ctx, func() (bool, error) {
		held, err := k.w.Lock(ctx, 0, m)
		if err == nil {
			k.False(lost, "%v lock of case %+v", m, kills[k.n])
			return true, held.Unlock(ctx)
		}
		dead(k.Rank, err, start, victim+k.n)
		return lost, nil
	}), "%v lock of case %+v", m, kills[k.n])
}

// first is the part of rank 0: it brings the others to their places, kills the victim, and returns what it
// holds.
func (k *lockKill) first(ctx context.Context) window.Held {
	c := &kills[k.n]
	_, pid, err := window.WaitUntil(ctx, k.w, pidOfVictim)
	k.NoError(err)
	var held window.Held
	if c.place != holding {
		held, err = k.w.Lock(ctx, 0, c.first)
		k.NoError(err)
	}
	for _, rank := range c.order {
		k.NoError(window.AtomicStore(ctx, k.w, rank, 0, 1))
		k.NoError(repeatUntil(ctx, func() (bool, error) {
			s := k.w.LockState()
			return s.Waiters && slices.Contains(s.Waiting, rank), nil
		}))
	}
	if c.place == handed {
		k.NoError(unix.Kill(int(pid), unix.SIGSTOP))
		err = held.Unlock(ctx)
	}
	s := k.w.LockState()
	k.NoError(unix.Kill(int(pid), unix.SIGKILL))
	k.NoError(err)
	k.Equal(c.place == waiting, slices.Contains(s.Waiting, victim), "%+v", s)
	k.Equal(c.place != waiting && c.victim == window.Exclusive, s.Writer == victim, "%+v", s)
	start := time.Now()
	_, _, err = window.WaitUntil(ctx, k.w, window.Elements[int64]{At: []int{0}, Value: 1})
	dead(k.Rank, err, start, victim+k.n)
	return held
}
