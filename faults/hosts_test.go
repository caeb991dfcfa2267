//go:build linux

package faults

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// spread places ranks on hosts: counts has the ranks of each.
func spread(on []*hosts.Host, counts ...int) (place []*hosts.Host) {
	for i, n := range counts {
		for range n {
			place = append(place, on[i])
		}
	}
	return place
}

// build builds programs, and returns their folder.
func build(t testing.TB, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", append([]string{"build", "-o", dir + "/"}, packages...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// usesSharedMemoryWithinHosts requires that ranks of a host used shm, and others tcp.
func (j *job) usesSharedMemoryWithinHosts() {
	j.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	used := map[string]uint64{}
	require.Len(j, j.stats, len(j.spec.place))
	for _, s := range j.stats {
		for _, p := range s.Peers {
			want := "tcp"
			switch {
			case p.Peer == s.Rank:
				continue
			case j.spec.place[p.Peer] == j.spec.place[s.Rank]:
				want = "shm"
			}
			require.Contains(j, p.Provider, want, "rank %d to %d", s.Rank, p.Peer)
			used[want] += p.Ops
		}
	}
	require.NotZero(j, used["tcp"], "operations between hosts")
}
