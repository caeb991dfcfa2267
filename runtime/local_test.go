package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
)

// local runs body on n ranks under a watchdog.
func local(t *testing.T, n int, body runtime.Body, opts ...runtime.Option) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, errors.New("watchdog: 30 s"))
	defer cancel()
	return runtime.RunLocal(ctx, n, body, opts...)
}

func TestBarrierHoldsEveryoneBack(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 8} {
		arrived := make([]int, n)
		require.NoError(t, local(t, n, func(ctx context.Context, job *runtime.Job) error {
			world := job.World()
			for round := 1; round <= 200; round++ {
				arrived[world.Rank()] = round
				if err := world.Barrier(ctx); err != nil {
					return err
				}
				for r, got := range arrived {
					if got != round {
						return fmt.Errorf("round %d: rank %d is in %d", round, r, got)
					}
				}
				if err := world.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		}), "%d ranks", n)
	}
}
