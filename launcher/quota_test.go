package launcher

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestQuotaIsTheLeastOfAllCgroupsAboveUs(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"none": {nil, math.Inf(1)},
		"version 2": {map[string]string{
			"proc/self/cgroup":          "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max":   "150000 100000\n",
			"sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
		}, 1.5},
		"without a limit": {map[string]string{
			"proc/self/cgroup":        "0::/a\n",
			"sys/fs/cgroup/a/cpu.max": "max 100000\n",
		}, math.Inf(1)},
		"version 1": {map[string]string{
			"proc/self/cgroup":                      "2:cpu,cpuacct:/a\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us":  "50000\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":    "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":   "100000\n",
		}, 0.5},
		"nonsense": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "much\n"}, math.Inf(1)},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		require.Equal(t, c.want, quota(root), name)
	}
}

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
		_, cores := p.of(0)
		require.Equal(t, c.cores, cores, "a rank may run so many threads at a time")
		require.Equal(t, c.shared, p.shared(), "ranks that wait have so many cores")
	}
}
