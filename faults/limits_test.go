//go:build linux

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

func TestTwoJobsOnTheSameHostsDoNotMeet(t *testing.T) {
	need(t)
	t.Parallel()
	bed, lan := hosts.Star(t, 1, 2)
	on := bed.Hosts()
	s := spec{name: "all", place: spread(on, 2, 2), meet: on[0], lan: lan, family: hosts.IPv4}
	first, second := start(t, s), start(t, s)
	first.ready()
	second.ready()
	first.succeeds()
	second.succeeds()
	second.leavesNothing()
}

// A shortage is a row of TestAllocationBeyondMemoryReturnsErrExhausted. Ranks 0 and 1 share a host,
// rank 2 has another one.
type shortage struct {
	name string
	heap string // limit of each rank
	fill [3]int // bytes, by rank
	says [3]string
}

const (
	heapShort = `heap exhausted: 64 MiB in all, .* need 102\d MiB in one piece; raise GRUN_HEAP`
	hostShort = `heap exhausted: .*: \d+ MiB more are needed, .* has \d+ MiB left; ask for less, raise the limit, or free some`
)

var shortages = []shortage{
	{"limit of the heap", "64MiB", [3]int{1 << 30, 1 << 30, 1 << 30}, [3]string{heapShort, heapShort, heapShort}},
	{"memory of one host", "32TiB", [3]int{1 << 20, 1 << 20, 16 << 40}, [3]string{`rank 2 cannot: ` + hostShort, `rank 2 cannot: ` + hostShort, hostShort}},
}

// TestAllocationBeyondMemoryReturnsErrExhausted has ranks allocate more than there is. It is an error
// at all ranks, at once, and they go on.
func TestAllocationBeyondMemoryReturnsErrExhausted(t *testing.T) {
	need(t)
	for _, row := range shortages {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			bed, lan := hosts.Star(t, 1, 2)
			on := bed.Hosts()
			fill := map[int][]string{}
			for rank, bytes := range row.fill {
				fill[rank] = []string{fmt.Sprintf("%s=%d", envFill, bytes)}
			}
			j := start(t, spec{name: "fill", place: spread(on, 2, 1), meet: on[0], lan: lan, family: hosts.IPv4,
				env: []string{"GRUN_HEAP=" + row.heap}, rankIn: fill})
			for rank, r := range j.ranks {
				n, ok := j.next(r)
				require.True(t, ok, j.log())
				require.True(t, n.has("exhausted"), n.Text)
				require.Regexp(t, row.says[rank], n.Text)
			}
			j.succeeds()
			j.leavesNothing()
		})
	}
}

// TestLackOfDescriptorsEndsEveryRank gives processes ever fewer descriptors. With any
// number the job ends: well, or with ErrExhausted at a rank. With very few, Go itself fails.
func TestLackOfDescriptorsEndsEveryRank(t *testing.T) {
	need(t)
	t.Parallel()
	limits := []string{"8", "14", "20", "40"}
	if testjob.Soak() {
		limits = strings.Fields("6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 32 34 36 40")
	}
	bed, lan := hosts.Star(t, 1, 3)
	on := bed.Hosts()
	for _, limit := range limits {
		j := start(t, spec{name: "all", place: on, meet: on[0], lan: lan, family: hosts.IPv4,
			prefix: []string{"/bin/sh", "-c", `ulimit -n ` + limit + `; exec "$0" "$@"`}})
		j.finish()
		failed := 0
		for _, err := range j.wait() {
			if err != nil {
				failed++
			}
		}
		if failed > 0 {
			require.Regexp(t, `exhausted|too many open files|file descriptors|eventfd failed`, j.log(), "limit %s", limit)
		}
		t.Logf("limit %s: %d ranks failed", limit, failed)
		j.leavesNothing()
	}
}

// TestRanksThatCannotMapEachOtherAreOnTwoHosts runs two ranks of one host as different
// users, of which one cannot map the other's memory.
func TestRanksThatCannotMapEachOtherAreOnTwoHosts(t *testing.T) {
	need(t)
	t.Parallel()
	bed, lan := hosts.Star(t, 1, 2)
	on := bed.Hosts()
	exe, err := os.Executable()
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "program")
	program, err := os.ReadFile(exe)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, program, 0o755))
	for dir := filepath.Dir(copied); dir != "/" && dir != "/tmp"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	const nobody = 65534
	j := start(t, spec{name: "all", path: copied, place: spread(on, 2, 1), meet: on[1], lan: lan, family: hosts.IPv4,
		user: map[int]uint32{0: nobody}, env: []string{"GRUN_STATS=1"}})
	j.ready()
	j.succeeds()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.stats[0].Peers {
		if p.Peer != 0 {
			require.Equal(t, "tcp", p.Provider, "to rank %d", p.Peer)
		}
	}
}
