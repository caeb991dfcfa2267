package faults

import (
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

// TestAllocationBeyondTheHeapReturnsErrExhausted has /dev/shm smaller than the heap, which
// does not matter: the heap is no file there.
func TestAllocationBeyondTheHeapReturnsErrExhausted(t *testing.T) {
	need(t)
	t.Parallel()
	bed, lan := hosts.Star(t, 1, 2)
	on := bed.Hosts()
	j := start(t, spec{name: "fill", place: spread(on, 2, 1), meet: on[0], lan: lan, family: hosts.IPv4})
	for _, r := range j.ranks {
		n, ok := j.next(r)
		require.True(t, ok)
		require.True(t, n.has("exhausted"), n.Text)
	}
	j.succeeds()
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
