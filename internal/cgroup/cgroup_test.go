package cgroup

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestAboveListsTheOwnGroupAndAllAboveIt(t *testing.T) {
	root := fstest.MapFS{
		"proc/self/cgroup":                        {Data: []byte("nonsense\n4:cpu,cpuacct:/a/b\n3:cpuset:/x\n0::/c\n")},
		"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us":    {Data: []byte("-1\n")},
		"sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us": {Data: []byte("max\n")},
	}
	var names []string
	groups := Above(root, "cpu")
	for _, g := range groups {
		names = append(names, g.Name)
	}
	require.Equal(t, []string{"/a/b", "/a", "/", "/c", "/"}, names)
	require.Equal(t, []bool{false, false, false, true, true}, []bool{groups[0].V2, groups[1].V2, groups[2].V2, groups[3].V2, groups[4].V2})
	n, ok := groups[1].Number("cpu.cfs_quota_us")
	require.True(t, ok)
	require.EqualValues(t, -1, n)
	_, ok = groups[0].Number("cpu.cfs_period_us")
	require.False(t, ok, "max is no number")
	_, ok = groups[0].Number("absent")
	require.False(t, ok)
	require.Empty(t, Above(fstest.MapFS{}, "cpu"))
}
