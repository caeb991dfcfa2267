package catalog_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/device/catalog"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// shared makes memory that rank 0 shares.
func shared(r *testjob.Rank, n int) *device.Memory {
	if r.Me != 0 {
		return nil
	}
	fd, err := memory.NewMemfd("shared", int64(n))
	r.NoError(err)
	return device.Wrap(fd.Memory(0, fd.Size()), device.About{Kind: device.Memfd, Node: -1}, fd.Close)
}

// Windows of all ranks lie on pieces of one memory, which rank 0 made.
func TestSharedMemoryIsOneAtAllRanksOfTheHost(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		m, err := catalog.Share(ctx, r.World, 0, shared(r, 2*page*r.N))
		r.NoError(err)
		p, err := m.Take(r.Me*page, page)
		r.NoError(err)
		mirror, err := m.Take((r.N+r.Left())*page, page)
		r.NoError(err)
		w, err := window.Allocate[uint64](ctx, r.World, 8, window.On(p))
		r.NoError(err)
		r.NoError(w.PutValue(ctx, r.Right(), 3, uint64(100+r.Me)))
		r.NoError(w.Fence(ctx))
		r.EqualValues(100+r.Left(), w.Local()[3])
		mirror.Bytes()[0] = byte(r.Me + 1) // the last page that the left neighbor does not use for its window
		r.NoError(r.World.Barrier(ctx))
		r.NoError(mirror.Free())
		own, err := m.Take((r.N+r.Me)*page, page)
		r.NoError(err)
		r.EqualValues(r.Right()+1, own.Bytes()[0], "the right neighbor wrote here, without any operation")
		r.NoError(own.Free())
		r.NoError(w.Free(ctx))
		r.NoError(p.Free())
		r.NoError(m.Close())
	})
}

func TestShareGivesRanksOfOtherHostsNothing(t *testing.T) {
	testjob.Config{Provider: "tcp", Ranks: 3, Hosts: "aab"}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		m, err := catalog.Share(ctx, r.World, 0, shared(r, page))
		r.NoError(err)
		r.Equal(r.Me == 2, m == nil)
		if m != nil {
			r.NoError(m.Close())
		}
		r.NoError(r.World.Barrier(ctx))
	})
}

func TestWrongShareFailsAtAllRanks(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		_, err := catalog.Share(ctx, r.World, 0, nil)
		r.ErrorIs(err, catalog.ErrOffer)
		r.ErrorContains(err, "no memory to share")
		_, err = catalog.Share(ctx, r.World, 3, nil)
		r.ErrorIs(err, catalog.ErrOffer)
		heap := device.Wrap(memory.Heap(page), device.About{}, func() error { return nil })
		_, err = catalog.Share(ctx, r.World, 0, heap) // no descriptor leaves, and receivers learn that
		r.Error(err)
		m, err := catalog.Share(ctx, r.World, 0, shared(r, page)) // the team goes on
		r.NoError(err)
		r.NoError(m.Close())
	})
}

// SIGKILL ends the sender or a receiver at a random moment of many calls. All other ranks get the memory or ErrRankDead.
func TestKillInTheMiddleOfShareEndsItAtAllRanks(t *testing.T) {
	for victim := range 2 {
		for range 3 {
			out := testjob.Job{Ranks: 3, Provider: "tcp", Env: []string{"GOPGAS_TEST_VICTIM=" + strconv.Itoa(victim)}}.Try(t, "share")
			require.Equal(t, 137, out.ExitCode, "%s\n%s", out.Summary(), out.Output)
			require.NotContains(t, out.Output, "Error Trace")
			require.Equal(t, 2, strings.Count(out.Output, "survived"), "%s", out.Output)
		}
	}
}

func shareUntilDeath(ctx context.Context, r *testjob.Rank) {
	m := shared(r, page)
	if strconv.Itoa(r.Me) == os.Getenv("GOPGAS_TEST_VICTIM") {
		time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { _ = unix.Kill(os.Getpid(), unix.SIGKILL) })
	}
	for {
		got, err := catalog.Share(ctx, r.World, 0, m)
		if err != nil {
			r.ErrorIs(err, runtime.ErrRankDead)
			os.Stdout.WriteString("survived\n")
			return
		}
		if r.Me != 0 {
			r.NoError(got.Close())
		}
	}
}
