//go:build linux

package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestParseCPUListReadsTheKernelsLists(t *testing.T) {
	for list, want := range map[string][]int{"": nil, "0": {0}, "0-3,8,10-11": {0, 1, 2, 3, 8, 10, 11}, "1023": {1023}} {
		set, err := parseCPUList(list)
		require.NoError(t, err)
		require.Equal(t, len(want), set.Count(), list)
		for _, cpu := range want {
			require.True(t, set.IsSet(cpu))
		}
	}
	for _, list := range []string{"x", "3-1", "-1", "0-99999", "1-", "0,,x"} {
		_, err := parseCPUList(list)
		require.ErrorIs(t, err, ErrSpec, list)
	}
}

func FuzzCPUList(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, list string) {
		if _, err := parseCPUList(list); err != nil {
			require.ErrorIs(t, err, ErrSpec)
		}
	})
}

// allowed is this process's affinity mask.
func allowed(t *testing.T) (mask unix.CPUSet) {
	require.NoError(t, unix.SchedGetaffinity(0, &mask))
	return mask
}

// topology writes a tree like /sys/devices/system.
func topology(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	return dir
}

func TestSiblingsOfACoreAreOneSet(t *testing.T) {
	mask := allowed(t)
	files := map[string]string{}
	for cpu := range 1024 {
		if mask.IsSet(cpu) {
			files[fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", cpu)] = "0-1023"
		}
	}
	p, err := newPlacement(BindCore, topology(t, files))
	require.NoError(t, err)
	require.Len(t, p.sets, 1)
	require.Equal(t, mask, p.sets[0], "only what this process may use")
}

func TestRanksTakeTheNodesThatHaveCoresForThem(t *testing.T) {
	p, err := newPlacement(BindNUMA, topology(t, map[string]string{
		"node/node0/cpulist": "1000-1023", "node/node1/cpulist": "0-999", "node/node10/cpulist": "",
	}))
	require.NoError(t, err)
	mask := allowed(t)
	p.quota = math.Inf(1)
	for i := range 3 {
		set, cores := p.of(i, 3)
		require.Equal(t, mask, *set)
		require.Equal(t, mask.Count(), cores)
	}
}

func TestNeighborsShareASetWhereRanksOutnumberSets(t *testing.T) {
	p := &placement{sets: make([]unix.CPUSet, 3), quota: math.Inf(1)}
	for i := range p.sets {
		p.sets[i].Set(i)
	}
	for ranks, want := range map[int][]int{1: {0}, 3: {0, 1, 2}, 4: {0, 0, 1, 2}, 6: {0, 0, 1, 1, 2, 2}, 8: {0, 0, 0, 1, 1, 1, 2, 2}} {
		var took []int
		for i := range ranks {
			set, _ := p.of(i, ranks)
			for core := range p.sets {
				if set.IsSet(core) {
					took = append(took, core)
				}
			}
		}
		require.Equal(t, want, took, "%d ranks", ranks)
	}
}
