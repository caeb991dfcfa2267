package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/cgroup"
)

// headroom is the amount of memory that processes can take before the kernel
// starts killing.
type headroom struct {
	bytes int64
	where string // the host or group that sets the limit
}

// Available returns the amount of memory that processes of this group can take before
// the kernel starts killing. It also returns its bound: the host, or a control group.
func Available() (bytes int64, bound string) {
	left := readHeadroom(os.DirFS("/"))
	return left.bytes, left.where
}

// readHeadroom returns the least memory that the host, or a memory cgroup above this process, has
// left. The argument root is the file system's root. A file that it cannot read sets no limit.
func readHeadroom(root fs.FS) headroom {
	least := headroom{bytes: math.MaxInt64, where: "no known limit"}
	consider := func(bytes int64, where string) {
		if bytes = max(bytes, 0); bytes < least.bytes {
			least = headroom{bytes: bytes, where: where}
		}
	}
	if meminfo, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		if host := fields(meminfo); host["MemAvailable:"] > 0 {
			consider((host["MemAvailable:"]+host["SwapFree:"])<<10, "the host")
		}
	}
	for _, g := range cgroup.Above(root, "memory") {
		if left, limit, ok := leftOf(g); ok {
			consider(left, fmt.Sprintf("memory cgroup %s (limit %d MiB)", g.Name, limit>>20))
		}
	}
	return least
}

// unlimited is below the number that a group without a limit has in version 1.
const unlimited = 1 << 62

// leftOf returns the limit of one group less its use; ok is false without a
// limit. The kernel drops a part of the page cache before it kills.
func leftOf(g cgroup.Group) (left, limit int64, ok bool) {
	limitFile, usageFile, cache := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	if g.V2 {
		limitFile, usageFile, cache = "memory.max", "memory.current", "inactive_file"
	}
	limit, ok = g.Number(limitFile)
	if !ok || limit >= unlimited { // its use, which the kernel adds up for each read, does not matter
		return 0, 0, false
	}
	usage, ok := g.Number(usageFile)
	if !ok {
		return 0, 0, false
	}
	left = limit - usage
	if stat, err := g.Read("memory.stat"); err == nil {
		left += fields(stat)[cache]
	}
	return left, limit, true
}

// fields reads lines "name number …".
func fields(data []byte) map[string]int64 {
	found := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		parts := strings.Fields(lines.Text())
		if len(parts) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(parts[1], 10, 64); err == nil {
			found[parts[0]] = n
		}
	}
	return found
}
