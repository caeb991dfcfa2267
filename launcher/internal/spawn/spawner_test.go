//go:build linux

package spawn

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChildrenHaveTheSlackOfTheirShare starts a child with a slack, and then one without: the
// spawner's thread has its own slack again.
func TestChildrenHaveTheSlackOfTheirShare(t *testing.T) {
	s := New()
	defer s.Stop()
	before := slackOfChild(t, s, Share{})
	require.Equal(t, "1234000\n", slackOfChild(t, s, Share{Slack: 1234 * time.Microsecond}))
	require.NotEqual(t, "1234000\n", before)
	require.Equal(t, before, slackOfChild(t, s, Share{}))
}

// slackOfChild starts a child and returns its timer slack, in nanoseconds.
func slackOfChild(t *testing.T, s *Spawner, share Share) string {
	out, err := os.Create(filepath.Join(t.TempDir(), "slack"))
	require.NoError(t, err)
	defer out.Close()
	cmd := exec.Command("cat", "/proc/self/timerslack_ns")
	cmd.Stdout = out
	p, err := s.Start(cmd, share)
	require.NoError(t, err)
	status, err := p.Wait()
	require.NoError(t, err)
	require.Zero(t, status.ExitStatus())
	slack, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	return string(slack)
}
