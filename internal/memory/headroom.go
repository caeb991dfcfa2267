package memory

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// headroom is how much memory can be taken before the kernel starts killing.
type headroom struct {
	bytes int64
	where string // who sets the limit
}

// readHeadroom takes the least of what the host and every memory cgroup above
// this process have left. root is the file system's root. What cannot be read
// sets no limit.
func readHeadroom(root fs.FS) headroom {
	least := headroom{bytes: math.MaxInt64, where: "nobody"}
	consider := func(bytes int64, where string) {
		if bytes = max(bytes, 0); bytes < least.bytes {
			least = headroom{bytes: bytes, where: where}
		}
	}
	if host := readFields(root, "proc/meminfo"); host["MemAvailable:"] > 0 {
		consider((host["MemAvailable:"]+host["SwapFree:"])<<10, "the host")
	}
	for _, h := range memoryCgroups(root) {
		for dir := h.group; ; dir = path.Dir(dir) {
			if left, ok := h.left(root, path.Join(h.mount, dir)); ok {
				consider(left, "memory cgroup "+dir)
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// hierarchy is a cgroup tree with a memory controller and our place in it.
type hierarchy struct {
	mount, group string
	limit, usage string // file names
	cache        string // field of memory.stat: what the kernel would drop first
}

// memoryCgroups finds this process's place in cgroup v2 and v1.
func memoryCgroups(root fs.FS) []hierarchy {
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var found []hierarchy
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		group := path.Join("/", parts[2])
		switch parts[1] {
		case "":
			found = append(found, hierarchy{"sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file"})
		case "memory":
			found = append(found, hierarchy{"sys/fs/cgroup/memory", group,
				"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"})
		}
	}
	return found
}

// left is the limit of one group less its use; ok is false without a limit.
func (h hierarchy) left(root fs.FS, dir string) (left int64, ok bool) {
	limit, ok := readNumber(root, path.Join(dir, h.limit))
	if !ok {
		return 0, false
	}
	usage, ok := readNumber(root, path.Join(dir, h.usage))
	if !ok {
		return 0, false
	}
	return limit - usage + readFields(root, path.Join(dir, "memory.stat"))[h.cache], true
}

// readNumber reads a file that holds one number ("max" is none).
func readNumber(root fs.FS, name string) (int64, bool) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	return n, err == nil
}

// readFields reads a file of lines "name number …".
func readFields(root fs.FS, name string) map[string]int64 {
	fields := map[string]int64{}
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return fields
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		parts := strings.Fields(lines.Text())
		if len(parts) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(parts[1], 10, 64); err == nil {
			fields[parts[0]] = n
		}
	}
	return fields
}
