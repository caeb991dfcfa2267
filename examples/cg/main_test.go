package main

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestRanksSolveAsOneRankDoes(t *testing.T) {
	for _, provider := range []string{"loop", "tcp"} {
		for _, n := range []int{1, 2, 3, 4} {
			for _, rows := range []int{1, 3, 60} {
				for _, entries := range []int{0, 4} {
					var out strings.Builder // rank 0 alone prints
					o := options{rows: rows, entries: entries, tolerance: 1e-10, out: &out}
					require.NoError(t, testjob.RunLocal(t.Context(), n, o.run, runtime.WithProvider(provider)),
						"%s, %d ranks, %d rows, %d entries", provider, n, rows, entries)
					require.Contains(t, out.String(), "as one rank alone solves them")
				}
			}
		}
	}
}

func TestCheckFindsAWrongSolution(t *testing.T) {
	err := testjob.RunLocal(t.Context(), 1, func(ctx context.Context, job *runtime.Job) error {
		o := options{rows: 10, entries: 2, tolerance: 1e-10}
		return o.check(ctx, job.World(), make([]float64, 10), 5)
	})
	require.Error(t, err)
}

func TestMatrixIsSymmetricAndItsRowsDoNotDependOnTheRank(t *testing.T) {
	const n = 30
	whole := newMatrix(n, 5, 0, n)
	dense := make([][]float64, n)
	for i := range dense {
		dense[i] = make([]float64, n)
		for k := whole.offsets[i]; k < whole.offsets[i+1]; k++ {
			dense[i][whole.columns[k]] += whole.entries[k]
		}
	}
	for i := range dense {
		others := 0.0
		for j := range dense {
			require.Equal(t, dense[i][j], dense[j][i])
			if i != j {
				others += math.Abs(dense[i][j])
			}
		}
		require.Greater(t, dense[i][i], others, "row %d", i)
	}
	part := newMatrix(n, 5, 10, 20)
	at := whole.offsets[10]
	require.Equal(t, whole.entries[at:whole.offsets[20]], part.entries)
	require.Equal(t, whole.columns[at:whole.offsets[20]], part.columns)
}

func TestOwnerIsTheRankWhosePartHoldsTheRow(t *testing.T) {
	for _, n := range []int{1, 2, 7, 100} {
		for _, size := range []int{1, 2, 3, 8} {
			for row := range n {
				first, end := part(n, owner(n, row, size), size)
				require.True(t, first <= row && row < end, "row %d of %d, %d ranks", row, n, size)
			}
		}
	}
}
