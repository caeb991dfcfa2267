package faults

import (
	"os/exec"
	"path/filepath"
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

// build builds the examples, and returns their folder.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir+"/", "../examples/...").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

func TestExamplesEndWellOnThreeHosts(t *testing.T) {
	need(t)
	bed, lan := hosts.Star(t, 1, 4)
	all := bed.Hosts()
	dir := build(t)
	for _, example := range []string{"hello", "heat", "wordcount", "pipes", "kmeans", "gups"} {
		t.Run(example, func(t *testing.T) {
			s := spec{path: filepath.Join(dir, example), place: spread(all, 2, 1, 3), meet: all[3], lan: lan, family: hosts.IPv4,
				env: []string{"GRUN_STATS=1"}}
			switch example {
			case "wordcount", "pipes":
				s.args = []string{"../docs"}
			case "gups":
				s.args = []string{"-log2", "14"}
			}
			j := start(t, s)
			j.succeeds()
			j.usesSharedMemoryWithinHosts()
		})
	}
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
