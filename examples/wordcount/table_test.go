package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/runtime"
)

// words draws words of all lengths, many of them alike.
func words() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[ab]{1,3}`),
		rapid.StringMatching(`[a-z]{1,12}`),
		rapid.Map(rapid.IntRange(longest-2, longest+3), func(n int) string { return strings.Repeat("x", n) }),
		rapid.Map(rapid.SampledFrom([]string{"y", "z"}), func(end string) string { return strings.Repeat("x", 5000) + end }),
	)
}

// hashes go from what the table uses to those that keep telling words apart to
// the comparison of keys.
var hashes = map[string]func(string) uint64{
	"fnv":      nil,
	"constant": func(string) uint64 { return 7 },
	"by length": func(w string) uint64 {
		return uint64(len(w)) << tagShift
	},
}

func TestTableHoldsTheSumOfAllRanksAdditions(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				n := rapid.SampledFrom(jobs).Draw(rt, "ranks")
				adds := make([]map[string]uint64, n)
				for i := range adds {
					adds[i] = rapid.MapOfN(words(), rapid.Uint64Range(1, 9), -1, 20).Draw(rt, "adds")
				}
				requireContents(rt, n, "loop", hash, adds)
			})
		})
	}
}

// TestTableOfManyRanksAndSharedWords has all ranks race for the same slots.
func TestTableOfManyRanksAndSharedWords(t *testing.T) {
	everywhere(t, func(t *testing.T, n int, provider string) {
		adds := make([]map[string]uint64, n)
		for r := range adds {
			adds[r] = map[string]uint64{}
			for i := range 60 {
				adds[r][fmt.Sprintf("shared%d", i)] = uint64(r + i + 1)
			}
			adds[r][fmt.Sprintf("own%d", r)] = 1
			adds[r][strings.Repeat("long", 20_000)+fmt.Sprint(r%2)] = 1
		}
		requireContents(t, n, provider, nil, adds)
	})
}

func TestEmptyTable(t *testing.T) {
	everywhere(t, func(t *testing.T, n int, provider string) {
		requireContents(t, n, provider, nil, make([]map[string]uint64, n))
	})
}

// TestRepeatedAddsOfOneWordCount: a plan names a word once however often it is
// added.
func TestRepeatedAddsOfOneWordCount(t *testing.T) {
	everywhere(t, func(t *testing.T, n int, provider string) {
		const rounds = 40
		require.NoError(t, local(n, provider, func(ctx context.Context, job *runtime.Job) error {
			plan := NewPlan(n)
			plan.Add("again")
			table, err := NewTable(ctx, job.World(), plan)
			if err != nil {
				return err
			}
			for range rounds {
				if err := table.Add(ctx, "again", 2); err != nil {
					return err
				}
			}
			if err := table.Fence(ctx); err != nil {
				return err
			}
			got, err := contents(ctx, table)
			if err == nil && (len(got) != 1 || got["again"] != uint64(2*rounds*n)) {
				err = fmt.Errorf("got %v", got)
			}
			return errors.Join(err, table.Free(ctx))
		}))
	})
}

func TestWordsThatNoPlanNamedAreRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, n int, provider string) {
		require.NoError(t, local(n, provider, func(ctx context.Context, job *runtime.Job) error {
			plan := NewPlan(n)
			plan.Add("planned")
			table, err := NewTable(ctx, job.World(), plan)
			if err != nil {
				return err
			}
			if err := table.Add(ctx, "planned", 1); err != nil {
				return err
			}
			var full *FullError
			if err := table.Add(ctx, strings.Repeat("surprise", 10), 1); !errors.As(err, &full) {
				return fmt.Errorf("got %w, want a FullError", err)
			}
			return table.Free(ctx)
		}))
	})
}

func TestTopOrdersByCountAndThenByWord(t *testing.T) {
	for k, want := range map[int][]Entry{
		0: nil,
		1: {{"often", 9}},
		3: {{"often", 9}, {"alike", 4}, {"alikf", 4}},
		9: {{"often", 9}, {"alike", 4}, {"alikf", 4}, {"rare", 1}},
	} {
		everywhere(t, func(t *testing.T, n int, provider string) {
			adds := make([]map[string]uint64, n)
			adds[0] = map[string]uint64{"often": 8, "alikf": 4, "rare": 1}
			adds[n-1] = sum([]map[string]uint64{adds[n-1], {"often": 1, "alike": 4}})
			if n == 1 {
				adds[0]["often"] = 9
			}
			require.NoError(t, local(n, provider, func(ctx context.Context, job *runtime.Job) error {
				table, err := filled(ctx, job.World(), nil, adds)
				if err != nil {
					return err
				}
				got, err := table.Top(ctx, k)
				if job.World().Rank() == 0 && fmt.Sprint(got) != fmt.Sprint(want) {
					err = fmt.Errorf("top %d: %v, want %v", k, got, want)
				}
				return errors.Join(err, table.Free(ctx))
			}))
		})
	}
}
