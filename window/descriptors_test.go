package window_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestErrExhaustedNamesTheRankWithoutDescriptorsAtBothEnds(t *testing.T) {
	for _, provider := range []string{"shm", "tcp"} {
		testjob.Job{Ranks: 2, Provider: provider, Env: []string{envMeet + "=" + t.TempDir()}}.Run(t, "descriptors")
	}
}

func TestRankRaisesItsLimitOfDescriptorsToTheHardLimit(t *testing.T) {
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = min(512, limit.Max)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low)) // which ranks inherit
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) })
	testjob.Job{Ranks: 1, Provider: "tcp"}.Run(t, "limit")
}

// limitIsRaised: Go does it at the start of a program that imports package os.
func limitIsRaised(_ context.Context, r *testjob.Rank) {
	var limit unix.Rlimit
	r.NoError(unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	r.GreaterOrEqual(limit.Cur, limit.Max-1)
}

// envMeet names the directory in which the ranks meet.
const envMeet = "GOPGAS_TEST_MEET"

// The poor rank runs out of descriptors before the two are connected.
const poor, rich = 1, 0

func withoutDescriptors(ctx context.Context, r *testjob.Rank) {
	f := team.Of(r.World)
	block, err := f.Arena().Alloc(64)
	r.NoError(err)
	_, err = f.Register(ctx, "x", block.Memory)
	r.NoError(err)
	enough, shm := 1, f.Providers()[0] == "shm" // for a connection
	if shm {
		enough = 2 // to map the memory of a process
	}
	steps := []struct {
		origin, target, left int // left: descriptors of the poor rank
		works                bool
	}{
		{poor, rich, 0, false},
		{rich, poor, 0, shm}, // the target takes no part there
		{rich, poor, enough, true},
		{poor, rich, enough, true},
	}
	var fillers []int
	for i, step := range steps {
		if r.Me == poor {
			closeAll(r, fillers)
			fillers = fill(r, step.left)
		}
		meet(ctx, r, 2*i)
		if r.Me == step.origin {
			remote, err := f.Resolve(ctx, step.target, "x")
			if step.works {
				r.NoError(err)
				r.NoError(remote.Peer.Flush(ctx))
			} else {
				poorIsNamed(r, err)
			}
		}
		meet(ctx, r, 2*i+1)
	}
	closeAll(r, fillers)
}

// meet is a barrier by directories: it needs no descriptors and connects no ranks.
func meet(ctx context.Context, r *testjob.Rank, point int) {
	at := func(rank int) string { return fmt.Sprintf("%s/%d-%d", os.Getenv(envMeet), point, rank) }
	r.NoError(os.Mkdir(at(r.Me), 0o700))
	for rank := range r.N {
		for errors.Is(unix.Access(at(rank), unix.F_OK), unix.ENOENT) {
			r.NoError(ctx.Err())
			time.Sleep(time.Millisecond)
		}
	}
}

func poorIsNamed(r *testjob.Rank, err error) {
	r.ErrorIs(err, runtime.ErrExhausted)
	r.NotErrorIs(err, runtime.ErrUnreachable)
	var rank *runtime.RankError
	r.ErrorAs(err, &rank)
	r.Equal(poor, rank.Rank)
	r.ErrorContains(err, "rank 1: exhausted (no file descriptors left, limit 64: raise ulimit -n)")
}

func closeAll(r *testjob.Rank, fds []int) {
	for _, fd := range fds {
		r.NoError(unix.Close(fd))
	}
}

// fill opens descriptors up to a limit of 64, but for those that are left.
func fill(r *testjob.Rank, left int) (fds []int) {
	var limit unix.Rlimit
	r.NoError(unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	limit.Cur = 64
	r.NoError(unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			r.ErrorIs(err, unix.EMFILE)
			break
		}
		fds = append(fds, fd)
	}
	for range left {
		r.NoError(unix.Close(fds[len(fds)-1]))
		fds = fds[:len(fds)-1]
	}
	return fds
}
