package cgroup

import (
	"fmt"
	"io/fs"
	"math"
)

// Quota returns how many cores' time the cgroups of this process let it use, +Inf
// without a limit. root is the file system's root.
func Quota(root fs.FS) float64 {
	least := math.Inf(1)
	for _, g := range Above(root, "cpu") {
		var time, period int64
		if g.V2 {
			if text, err := g.Read("cpu.max"); err == nil {
				fmt.Sscan(string(text), &time, &period) //nolint:errcheck // "max 100000" is no limit
			}
		} else {
			time, _ = g.Number("cpu.cfs_quota_us") // -1: no limit
			period, _ = g.Number("cpu.cfs_period_us")
		}
		if time > 0 && period > 0 {
			least = min(least, float64(time)/float64(period))
		}
	}
	return least
}
