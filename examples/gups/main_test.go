package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// jobs are the sizes that every test runs at.
var jobs = []int{1, 2, 3, 4, 8}

func local(n int, provider string, body runtime.Body) error {
	return testjob.RunLocal(context.Background(), n, body, runtime.WithProvider(provider))
}

func TestNoUpdateIsLost(t *testing.T) {
	for _, provider := range []string{"loop", "tcp"} {
		for _, n := range jobs {
			for _, log2 := range []int{0, 1, 9} {
				t.Run(fmt.Sprintf("%s/%d/2^%d", provider, n, log2), func(t *testing.T) {
					var out strings.Builder // rank 0 alone prints
					require.NoError(t, local(n, provider, func(ctx context.Context, job *runtime.Job) error {
						o := options{log2: log2, verify: true, out: &out}
						return o.run(ctx, job)
					}))
					require.Contains(t, out.String(), fmt.Sprintf("verified: 0 errors in %d words\n", 1<<log2))
					require.Contains(t, out.String(), fmt.Sprintf("%d updates, %d ranks\n", 4<<log2, n))
					require.Equal(t, n, strings.Count(out.String(), "rank "))
				})
			}
		}
	}
}

// TestUpdatesOfAllRanksAreThoseOfOneRank holds the table in the middle, before it is
// undone, against one that is updated without any rank.
func TestUpdatesOfAllRanksAreThoseOfOneRank(t *testing.T) {
	const log2, updates = 6, 1000
	want := make([]uint64, 1<<log2)
	for i := range want {
		want[i] = uint64(i)
	}
	ran := uint64(1)
	for range updates {
		ran = next(ran)
		want[ran%(1<<log2)] ^= ran
	}
	for _, n := range jobs {
		require.NoError(t, local(n, "loop", func(ctx context.Context, job *runtime.Job) error {
			table, err := newTable(ctx, job.World(), log2)
			if err != nil {
				return err
			}
			from, to := share(updates, job.World().Rank(), n)
			if _, err := table.timed(ctx, from, to); err != nil {
				return err
			}
			for i, v := range table.w.Local() {
				if at := table.initial(i); at < 1<<log2 && v != want[at] {
					return fmt.Errorf("word %d is %#x, want %#x", at, v, want[at])
				}
			}
			return table.w.Free(ctx)
		}), "%d ranks", n)
	}
}

func TestCheckFindsALostUpdate(t *testing.T) {
	for _, n := range jobs {
		err := local(n, "loop", func(ctx context.Context, job *runtime.Job) error {
			o := options{log2: 8, updates: 100, verify: true, out: &strings.Builder{}}
			table, err := newTable(ctx, job.World(), o.log2)
			if err != nil {
				return err
			}
			if job.World().Rank() == n-1 {
				if _, err := window.FetchXor(ctx, table.w, 0, 3, 1); err != nil {
					return err
				}
			}
			from, to := share(o.updates, job.World().Rank(), n)
			if _, err := table.timed(ctx, from, to); err != nil {
				return err
			}
			return o.check(ctx, job.World(), table, from, to)
		})
		require.ErrorContains(t, err, "1 of 256 words are wrong", "%d ranks", n)
	}
}

func TestSharesCoverAllUpdates(t *testing.T) {
	for _, n := range jobs {
		for _, updates := range []uint64{0, 1, 7, 1000} {
			end := uint64(0)
			for rank := range n {
				from, to := share(updates, rank, n)
				require.Equal(t, end, from)
				require.LessOrEqual(t, to-from, updates/uint64(n)+1)
				end = to
			}
			require.Equal(t, updates, end)
		}
	}
}

// TestStartReturnsAnyNumberOfTheSequence compares powers by squaring with powers
// by multiplication.
func TestStartReturnsAnyNumberOfTheSequence(t *testing.T) {
	ran := uint64(1)
	for n := range uint64(2000) {
		require.Equal(t, ran, start(n), "number %d", n)
		ran = next(ran)
	}
	require.Equal(t, multiply(start(1<<40), start(12345)), start(1<<40+12345))
	require.Equal(t, uint64(1), start(1<<63-1), "the period is 2^63-1")
}
