//go:build linux

package launcher

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInterruptedCopyOfGrunIsRemoved closes both directions of the stream before all bytes
// of grun have come, as sshd does when its client is killed.
func TestInterruptedCopyOfGrunIsRemoved(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", script, "gopgas", "hash", "1000", "")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, mark("hash")+"need\n", line)
	copies, err := filepath.Glob(filepath.Join(dir, "gopgas", ".new.*"))
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.NoError(t, out.Close())
	require.NoError(t, in.Close())
	require.Error(t, cmd.Wait())
	require.NoFileExists(t, copies[0])
}
