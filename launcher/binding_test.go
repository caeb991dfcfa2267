//go:build linux

package launcher

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// allowed is this process's affinity mask.
func allowed(t *testing.T) (mask unix.CPUSet) {
	require.NoError(t, unix.SchedGetaffinity(0, &mask))
	return mask
}

func TestBoundRanksStillHaveTwoPs(t *testing.T) {
	before := allowed(t)
	o := run(t, Spec{
		Programs: sh(2, `echo $GOMAXPROCS $(grep Cpus_allowed_list /proc/self/status | wc -w)`),
		Bind:     BindCore,
	})
	require.NoError(t, o.err)
	require.Equal(t, []string{"2 2", "2 2"}, o.stdout.lines())
	require.Equal(t, before, allowed(t), "the launcher's own mask is what it was")
}

func TestUsersGOMAXPROCSIsKept(t *testing.T) {
	o := run(t, Spec{Programs: sh(1, "echo $GOMAXPROCS"), Env: []string{"GOMAXPROCS=7"}})
	require.Equal(t, "7\n", o.stdout.String())
}
