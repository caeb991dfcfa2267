package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirstNodeReadsSlurmsLists(t *testing.T) {
	for list, want := range map[string]string{
		"eco": "eco", "eco,b[1-2]": "eco", "eco[1-2,7]": "eco1", "eco[07],x": "eco07", "eco[12,1-3]-ib,x": "eco12-ib", "r[1-2]n[03-04]": "r1n03", "[5-6]": "5",
	} {
		got, ok := firstNode(list)
		require.True(t, ok, list)
		require.Equal(t, want, got, list)
	}
	for _, list := range []string{"", ",a", "eco[", "eco[]", "eco[-2]", "eco[1-2", "eco[1][", "eco[1]["} {
		_, ok := firstNode(list)
		require.False(t, ok, list)
	}
}

func FuzzFirstNode(f *testing.F) {
	f.Add("eco[1-2,07]-ib,x")
	f.Fuzz(func(t *testing.T, list string) { firstNode(list) })
}

func TestShellsAndSingleTasksOfSrunStartNoJob(t *testing.T) {
	task := []string{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=a", EnvSecret + "=" + hexSecret}
	for _, v := range []string{"SLURM_PTY_PORT=5", "SLURM_STEP_NUM_TASKS=1", EnvSecret + "="} {
		_, ok, err := fromEnv(lookupIn(append(task[:6:6], v)))
		require.NoError(t, err, v)
		require.False(t, ok, v)
	}
	for name, v := range map[string]string{"SLURM_JOB_ID": "=x", "SLURM_STEP_ID": "=-1", "SLURM_STEP_NODELIST": "=a["} {
		_, ok, err := fromEnv(lookupIn(append(task[:6:6], name+v)))
		require.True(t, ok, v)
		var wrong *EnvError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, name, wrong.Name)
	}
}
