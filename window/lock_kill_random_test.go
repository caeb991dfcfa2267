package window_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// envLockSeed hands the seed of a trial to its processes, or to the test.
const envLockSeed = "GOPGAS_LOCK_SEED"

// TestRandomKillsAmidLocks kills a rank of four at any moment of loops of locks.
func TestRandomKillsAmidLocks(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector looks at one process")
	}
	first, trials := uint64(1), uint64(4)
	if os.Getenv("GOPGAS_SOAK") == "1" {
		trials = 1000
	}
	if s := os.Getenv(envLockSeed); s != "" {
		var err error
		first, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		trials = 1
	}
	for seed := first; seed < first+trials; seed++ {
		j := testjob.Job{Provider: []string{"shm", "tcp"}[seed%2], Ranks: 4, Env: []string{envLockSeed + "=" + strconv.FormatUint(seed, 10)}}
		out := j.Try(t, "locker dies")
		require.Len(t, out.Failures, 1, "seed %d: %s\n%s", seed, out.Summary(), out.Output)
		require.Equal(t, unix.SIGKILL, out.Failures[0].Signal, "seed %d: %s", seed, out.Output)
	}
}

// A lockTrial is a trial at one rank. Exclusive holders count at the home without atomics, and put there
// how often each has counted.
type lockTrial struct {
	*testjob.Rank
	w            *window.Window[int64]
	home, victim int
	own          *rand.Rand
	counted      int64
}

// lockerDies runs a trial.
func lockerDies(ctx context.Context, r *testjob.Rank) {
	seed, err := strconv.ParseUint(os.Getenv(envLockSeed), 10, 64)
	r.NoError(err)
	rng := rand.New(rand.NewPCG(seed, 1))
	k := lockTrial{Rank: r, home: rng.IntN(r.N), victim: rng.IntN(r.N), own: rand.New(rand.NewPCG(seed, uint64(2+r.Me)))}
	within := rng.Int64N(int64(4 * time.Millisecond))
	survivors, err := r.World.Split(ctx, color(r.Me == k.victim), 0)
	r.NoError(err)
	k.w = allocate[int64](ctx, r, 1+r.N)
	start := time.Now()
	err = r.World.Barrier(ctx) // the victim may be dead before others have left it
	if r.Me == k.victim {
		time.AfterFunc(time.Duration(within), r.Die)
	}
	gone := make(chan error, 1)
	if r.Me != k.victim {
		go func() { gone <- r.World.Barrier(ctx) }()
	}
	for err == nil && len(gone) == 0 { // free locks can be taken still
		err = k.turn(ctx)
	}
	if err != nil {
		dead(r, err, start, k.victim)
	}
	dead(r, <-gone, start, k.victim)
	k.check(ctx, survivors)
}

// turn takes and leaves the lock once.
func (k *lockTrial) turn(ctx context.Context) error {
	m := window.Mode(k.own.IntN(2))
	held, err := k.w.Lock(ctx, k.home, m)
	if err != nil {
		return err
	}
	before, err := k.w.GetValue(ctx, k.home, 0)
	if err == nil && m == window.Exclusive {
		if err = k.w.PutValue(ctx, k.home, 0, before+1); err == nil {
			k.counted++
			err = k.w.PutValue(ctx, k.home, 1+k.Me, k.counted)
		}
	} else if err == nil {
		var after int64
		if after, err = k.w.GetValue(ctx, k.home, 0); err == nil {
			k.Equal(before, after, "a writer came between")
		}
	}
	if e := held.Unlock(ctx); err == nil {
		err = e
	}
	return err
}

// check has the survivors look at the counts and at the lock. The victim may have died between its two
// puts, and it may have died with the lock.
func (k *lockTrial) check(ctx context.Context, survivors *runtime.Team) {
	k.NoError(survivors.Barrier(ctx))
	if k.home != k.victim {
		if k.Me == k.home {
			sum := int64(0)
			for _, n := range k.w.Local()[1:] {
				sum += n
			}
			k.Contains([]int64{sum, sum + 1}, k.w.Local()[0], "counts %v", k.w.Local())
		}
		k.NoError(survivors.Barrier(ctx))
	}
	for rank := range k.N {
		if rank == k.Me {
			start := time.Now()
			held, err := k.w.Lock(ctx, k.home, window.Exclusive)
			if err == nil {
				err = held.Unlock(ctx)
			}
			if err != nil {
				dead(k.Rank, err, start, k.victim)
			}
		}
		k.NoError(survivors.Barrier(ctx))
	}
}
