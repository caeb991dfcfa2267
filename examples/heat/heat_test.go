package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestHeatDoesNotDependOnTheNumberOfRanks(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4} {
		for name, opts := range map[string][]runtime.Option{"mapped": nil, "queued": {runtime.WithFMAMax(0)}} {
			t.Run(fmt.Sprintf("%d ranks, %s", n, name), func(t *testing.T) {
				require.NoError(t, testjob.RunLocal(t.Context(), n, heat, opts...))
			})
		}
	}
}

func TestVerifyFindsAWrongCell(t *testing.T) {
	err := runtime.RunLocal(t.Context(), 1, func(ctx context.Context, job *runtime.Job) error {
		r, err := newRod(ctx, job.World())
		if err != nil {
			return err
		}
		return r.verify() // without having computed anything
	})
	require.ErrorContains(t, err, "cell 0 is 1000")
}
