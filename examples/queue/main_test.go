package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestEachElementArrivesOnceAndInOrder(t *testing.T) {
	for _, provider := range []string{"loop", "tcp"} {
		for _, n := range []int{1, 2, 4} {
			for _, places := range []int{1, 2, 7} {
				var out strings.Builder // rank 0 alone prints
				o := options{elements: 100, places: places, out: &out}
				require.NoError(t, testjob.RunLocal(t.Context(), n, o.run, runtime.WithProvider(provider)), "%s, %d ranks, %d places", provider, n, places)
				require.Contains(t, out.String(), fmt.Sprintf("%d elements of %d ranks", 100*n, n))
			}
		}
	}
}

func TestPopFindsAnElementOutOfOrder(t *testing.T) {
	err := testjob.RunLocal(t.Context(), 1, func(ctx context.Context, job *runtime.Job) error {
		q, err := newQueue[element](ctx, job.World(), 0, 4)
		if err != nil {
			return err
		}
		for _, number := range []int64{0, 2} {
			if err := q.push(ctx, element{0, number}); err != nil {
				return err
			}
		}
		return options{elements: 2}.pop(ctx, q)
	})
	require.ErrorContains(t, err, "pop 1: got element 2 of rank 0 out of order")
}
