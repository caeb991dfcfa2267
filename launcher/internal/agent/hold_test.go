//go:build linux

package agent

import (
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/launcher/internal/wire"
)

func TestSweepRemovesProgramsOfKilledAgentsOnly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	plan := func(host string) wire.Plan { return wire.Plan{JobID: uuid.NewString(), Host: host} }
	left, held, other := plan("a"), plan("a"), plan("b-a")
	dead, err := holdStage(left)
	require.NoError(t, err)
	dead.release() // as the kernel does
	h, err := holdStage(held)
	require.NoError(t, err)
	defer h.release()
	require.NoError(t, os.MkdirAll(stagedPath(wire.Plan{JobID: left.JobID, Host: "a", Programs: []wire.Program{{Name: "prog"}}}, 0), 0o700))
	require.NoError(t, os.Mkdir(stageDir(other), 0o700))
	sweepStages("a")
	require.NoDirExists(t, stageDir(left))
	require.DirExists(t, stageDir(held))
	require.DirExists(t, stageDir(other), "another host may hold it")
}

// TestAgentHoldsTheDirectoryThatItSees has a sweep remove the directory between its making and the hold.
func TestAgentHoldsTheDirectoryThatItSees(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	plan := wire.Plan{JobID: uuid.NewString(), Host: "a"}
	h, err := holdStage(plan)
	require.NoError(t, err)
	defer h.release()
	require.NoError(t, os.Remove(stageDir(plan)))
	require.False(t, h.has(stageDir(plan)))
	again, err := holdStage(plan)
	require.NoError(t, err)
	defer again.release()
	require.True(t, again.has(stageDir(plan)))
}
