package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
)

// TestEveryFileIsClaimedOnce claims lists of all lengths at full speed.
func TestEveryFileIsClaimedOnce(t *testing.T) {
	for _, length := range []int{0, 1, 7, 1000} {
		files := make([]string, length)
		for i := range files {
			files[i] = fmt.Sprint(i)
		}
		everywhere(t, func(t *testing.T, n int, provider string) {
			var mu sync.Mutex
			times, takes := map[string]int{}, 0
			require.NoError(t, local(n, provider, func(ctx context.Context, job *runtime.Job) error {
				c, err := newClaims(ctx, job.World(), files)
				if err != nil {
					return err
				}
				for {
					mine, err := c.take(ctx)
					if err != nil {
						return err
					}
					mu.Lock()
					takes++
					for _, f := range mine {
						times[f]++
					}
					mu.Unlock()
					if len(mine) == 0 {
						break
					}
				}
				if got, err := c.progress(ctx); err != nil || got != length {
					return fmt.Errorf("progress %d, %w", got, err)
				}
				return c.free(ctx)
			}))
			require.Len(t, times, length)
			for f, k := range times {
				require.Equal(t, 1, k, "file %s", f)
			}
			require.LessOrEqual(t, takes, length/2+10*n+2, "a claim must cost less than a round trip per file")
		})
	}
}
