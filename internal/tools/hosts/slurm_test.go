//go:build linux

package hosts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlurmRunsTasksOnAllNodes(t *testing.T) {
	b := New(t, 1)
	lan := b.Network(IPv4)
	for _, name := range []string{"login", "node1", "node2"} {
		lan.Join(b.Host(name))
	}
	s := b.Slurm()
	out, err := s.Run("srun", "-N2", "-n4", "--ntasks-per-node=2", "cat", "/proc/sys/kernel/hostname")
	require.NoError(t, err, s.Logs())
	require.ElementsMatch(t, []string{"node1", "node1", "node2", "node2"}, strings.Fields(out))
}
