//go:build linux

package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// TestWithStatsReportsCountsToTheLauncher compares a job with statistics and one without.
func TestWithStatsReportsCountsToTheLauncher(t *testing.T) {
	for name, opts := range map[string][]runtime.Option{"without": nil, "with": {runtime.WithStats()}} {
		t.Run(name, func(t *testing.T) {
			reports := make(chan []byte, 2)
			placedUnder(t, 1, whole, bootstrap.Hooks{Reported: func(_ int, name string, payload []byte) {
				if name == bootstrap.StatsReport {
					reports <- payload
				}
			}})
			require.NoError(t, runtime.Run(t.Context(), func(_ context.Context, job *runtime.Job) error {
				require.Equal(t, len(opts) > 0, team.Of(job.World()).Counting(), "operations on mapped memory count")
				job.Note("rounds", 3)
				job.Note("rounds", 4)
				return nil
			}, opts...))
			if len(opts) == 0 {
				require.Empty(t, reports)
				return
			}
			select {
			case report := <-reports:
				var stats bootstrap.RankStats
				require.NoError(t, json.Unmarshal(report, &stats))
				require.Equal(t, map[string]int64{"rounds": 7}, stats.Notes)
			case <-testwatch.Context(t).Done():
				t.Fatal("no report")
			}
		})
	}
}
