package cgroup

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
		require.Equal(t, c.want, Quota(root), name)
	}
}
