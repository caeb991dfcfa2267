//go:build linux

package tunnel

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher/internal/spawn"
)

func TestMain(m *testing.M) {
	testwatch.HeedSignals()
	testwatch.Main(m)
}

// open runs a shell script.
func open(t *testing.T, script string) *Tunnel {
	s := spawn.New()
	t.Cleanup(s.Stop)
	tunnel, err := Start(s, []string{"sh", "-c", script})
	require.NoError(t, err)
	t.Cleanup(func() { tunnel.Close(); tunnel.Wait() })
	return tunnel
}

func TestTunnelCarriesBytesBothWays(t *testing.T) {
	tunnel := open(t, "cat; echo end; exit 3")
	_, err := tunnel.Write([]byte("text\n"))
	require.NoError(t, err)
	require.NoError(t, tunnel.CloseWrite())
	text, err := io.ReadAll(tunnel)
	require.NoError(t, err)
	require.Equal(t, "text\nend\n", string(text))
	require.Equal(t, 3, tunnel.Wait().Status.ExitStatus())
}

func TestWaitReturnsTheLastPartOfStandardError(t *testing.T) {
	tunnel := open(t, "seq 100000 >&2; echo last >&2; kill -TERM $$")
	end := tunnel.Wait()
	require.Equal(t, syscall.SIGTERM, end.Status.Signal())
	require.LessOrEqual(t, len(end.Said), maxSaid)
	require.Regexp(t, `100000\nlast\n$`, end.Said)
}

func TestChildrenThatHoldTheStreamEndWithTheCommand(t *testing.T) {
	tunnel := open(t, "sleep 1000 & exit 0")
	_, err := io.ReadAll(tunnel)
	require.NoError(t, err)
}

func TestWaitDoesNotWaitForAProcessOfAnotherSessionThatHoldsStandardError(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	tunnel := open(t, fmt.Sprintf("setsid sh -c 'echo $$ >&2; touch %[1]s; exec sleep 1000' >/dev/null & while ! [ -e %[1]s ]; do sleep 0.01; done", ready))
	require.Equal(t, 0, tunnel.Wait().Status.ExitStatus())
	pid := tunnel.Wait().Said
	require.NoError(t, exec.Command("sh", "-c", "kill -9 "+pid).Run())
}

func TestCloseEndsACommandThatIgnoresTheEndOfItsInput(t *testing.T) {
	tunnel := open(t, "trap '' TERM HUP; while :; do sleep 1; done")
	require.NoError(t, tunnel.Close())
	require.Equal(t, syscall.SIGKILL, tunnel.Wait().Status.Signal())
}

func TestStartReportsAMissingCommand(t *testing.T) {
	s := spawn.New()
	defer s.Stop()
	_, err := Start(s, []string{"no-such-command-anywhere"})
	require.ErrorIs(t, err, exec.ErrNotFound)
}
