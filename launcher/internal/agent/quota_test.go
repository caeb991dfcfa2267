//go:build linux

package agent

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRanksShareTheCoresOfTheQuota(t *testing.T) {
	p := &placement{quota: math.Inf(1)}
	for cpu := range 8 {
		p.all.Set(cpu)
	}
	for _, c := range []struct {
		quota         float64
		cores, shared int
	}{{math.Inf(1), 8, 8}, {100, 8, 8}, {2.5, 3, 2}, {1, 1, 1}, {0.2, 1, 1}} {
		p.quota = c.quota
		_, cores := p.of(0, 1)
		require.Equal(t, c.cores, cores, "a rank may run so many threads at a time")
		require.Equal(t, c.shared, p.shared(), "ranks that wait have so many cores")
	}
}

func TestSlackGrowsWithTheRanksOfACore(t *testing.T) {
	p := &placement{quota: math.Inf(1)}
	p.all.Set(0)
	p.all.Set(1)
	for ranks, slack := range map[int]time.Duration{
		1: 0, 2: 0, 3: 75 * time.Microsecond, 8: 200 * time.Microsecond, 128: 3200 * time.Microsecond, 4096: mostSlack,
	} {
		require.Equal(t, slack, p.slack(ranks), "%d ranks", ranks)
	}
	p.quota = 1
	require.Equal(t, 2*rankSlack, p.slack(2), "both ranks share the time of one core")
}
