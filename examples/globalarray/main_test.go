package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func TestRanksSortAsOneRankDoes(t *testing.T) {
	for _, provider := range []string{"loop", "tcp"} {
		for _, n := range []int{1, 2, 3, 4} {
			for _, numbers := range []int{1, 2, 100} {
				for _, below := range []int{1, 3, 50} {
					var out strings.Builder // rank 0 alone prints
					o := options{numbers: numbers, below: below, out: &out}
					require.NoError(t, testjob.RunLocal(t.Context(), n, o.run, runtime.WithProvider(provider)),
						"%s, %d ranks, %d numbers less than %d", provider, n, numbers, below)
					require.Contains(t, out.String(), "as one rank sorts them")
				}
			}
		}
	}
}

func TestCheckFindsAWrongNumber(t *testing.T) {
	err := testjob.RunLocal(t.Context(), 2, func(ctx context.Context, job *runtime.Job) error {
		a, err := newArray[int64](ctx, job.World(), "sorted", 10)
		if err != nil {
			return err
		}
		if job.World().Rank() == 0 {
			if err := a.put(ctx, 9, 5); err != nil {
				return err
			}
		}
		if err := a.sync(ctx); err != nil {
			return err
		}
		return options{numbers: 10, below: 1}.check(ctx, a)
	})
	require.ErrorContains(t, err, "place 9 holds 5, want 0")
}

func TestArrayRefusesARangeBeyondItsEnd(t *testing.T) {
	err := testjob.RunLocal(t.Context(), 2, func(ctx context.Context, job *runtime.Job) error {
		a, err := newArray[int64](ctx, job.World(), "short", 3)
		if err != nil {
			return err
		}
		return a.read(ctx, 2, make([]int64, 2))
	})
	require.ErrorIs(t, err, window.ErrRange)
}
