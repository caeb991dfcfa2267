//go:build linux

package memory

import (
	"io/fs"
	"math"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func files(content map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range content {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

const meminfo = "MemTotal: 9000 kB\nMemAvailable: 4000 kB\nSwapFree: 100 kB\n"

func TestHeadroomWithoutCgroupsIsThatOfTheHost(t *testing.T) {
	got := readHeadroom(files(map[string]string{"proc/meminfo": meminfo}))
	require.Equal(t, headroom{bytes: 4100 << 10, where: "the host"}, got)
}

func TestHeadroomIsThatOfTheTightestCgroup(t *testing.T) {
	got := readHeadroom(files(map[string]string{
		"proc/meminfo":                          meminfo,
		"proc/self/cgroup":                      "0::/job/rank\n",
		"sys/fs/cgroup/job/memory.max":          "3000000\n",
		"sys/fs/cgroup/job/memory.current":      "1500000\n",
		"sys/fs/cgroup/job/memory.stat":         "anon 5\ninactive_file 500000\n",
		"sys/fs/cgroup/job/rank/memory.max":     "max\n",
		"sys/fs/cgroup/job/rank/memory.current": "1500000\n",
	}))
	require.Equal(t, headroom{bytes: 2000000, where: "memory cgroup /job (limit 2 MiB)"}, got)
}

func TestHeadroomReadsCgroupsOfVersionOne(t *testing.T) {
	got := readHeadroom(files(map[string]string{
		"proc/meminfo":     meminfo,
		"proc/self/cgroup": "9:cpu:/\n4:memory:/job\n0::/\n",
		"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1000\n",
		"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "2000\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
		"sys/fs/cgroup/memory/memory.usage_in_bytes":     "2000\n",
	}))
	require.Equal(t, headroom{bytes: 0, where: "memory cgroup /job (limit 0 MiB)"}, got, "already above its limit")
}

// TestUseOfUnlimitedCgroupsIsNotRead counts: each rank reads at its start, and the kernel adds a group's use up.
func TestUseOfUnlimitedCgroupsIsNotRead(t *testing.T) {
	read := opened{files(map[string]string{
		"proc/meminfo":     meminfo,
		"proc/self/cgroup": "4:memory:/job\n0::/\n",
		"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
		"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "2000\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
	}), map[string]bool{}}
	require.Equal(t, headroom{bytes: 4100 << 10, where: "the host"}, readHeadroom(read))
	require.True(t, read.names["sys/fs/cgroup/memory/job/memory.limit_in_bytes"])
	require.False(t, read.names["sys/fs/cgroup/memory/job/memory.usage_in_bytes"])
	require.False(t, read.names["sys/fs/cgroup/memory/job/memory.stat"])
}

// opened records the files that are opened.
type opened struct {
	fs.FS
	names map[string]bool
}

func (o opened) Open(name string) (fs.File, error) {
	o.names[name] = true
	return o.FS.Open(name)
}

func TestUnreadableLimitsAreIgnored(t *testing.T) {
	require.EqualValues(t, math.MaxInt64, readHeadroom(files(nil)).bytes)
	got := readHeadroom(files(map[string]string{
		"proc/meminfo":               "MemAvailable: many kB\nshort\n",
		"proc/self/cgroup":           "nonsense\n\n0::/x\n",
		"sys/fs/cgroup/x/memory.max": "12",
	}))
	require.EqualValues(t, math.MaxInt64, got.bytes)
}

func TestThisHostHasHeadroom(t *testing.T) {
	got := readHeadroom(os.DirFS("/"))
	require.Positive(t, got.bytes)
	require.Less(t, got.bytes, int64(1)<<44)
}
