package bootstrap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lookupIn looks variables up in a list of NAME=value, the last one first.
func lookupIn(vars []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := len(vars) - 1; i >= 0; i-- {
			if value, ok := strings.CutPrefix(vars[i], name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

func TestFromEnvReadsARanksPlace(t *testing.T) {
	want := Env{Launcher: "grun", JobID: "j", Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, LocalCores: 3, Addr: "127.0.0.1:9", Secret: testSecret}
	got, ok, err := fromEnv(lookupIn(want.Vars()))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, got)
}

func TestFromEnvReturnsFalseOutsideAJob(t *testing.T) {
	_, ok, err := fromEnv(lookupIn(nil))
	require.NoError(t, err)
	require.False(t, ok)
}

func TestImpossibleEnvironmentNamesTheVariable(t *testing.T) {
	good := Env{JobID: "j", Rank: 0, Size: 2, LocalRank: 0, LocalSize: 2, LocalCores: 1, Addr: "h:1", Secret: testSecret}.Vars()
	for _, bad := range []string{
		EnvRank + "=2", EnvRank + "=-1", EnvRank + "=x", EnvSize + "=", EnvLocalRank + "=2", EnvLocalSize + "=3", EnvLocalCores + "=", EnvLocalCores + "=0",
		EnvAddr + "=", EnvSecret + "=00", EnvSecret + "=secret",
	} {
		_, ok, err := fromEnv(lookupIn(append(good[:len(good):len(good)], bad)))
		require.True(t, ok, bad)
		var env *EnvError
		require.ErrorAs(t, err, &env, bad)
		require.Equal(t, strings.Split(bad, "=")[0], env.Name)
		require.NotContains(t, err.Error(), "secret\"", "values of the secret are not shown")
	}
}

func TestForeignNamesAnotherLauncherAtOneProcessOfAJob(t *testing.T) {
	for _, c := range []struct {
		vars []string
		want string // "": no text
	}{
		{[]string{"PMI_RANK=0"}, "start it with a process manager that sets PMI_FD, or grun -n N"},
		{[]string{"PMIX_RANK=0", "SLURM_PROCID=0"}, "(PMIX_RANK is set): each process is a job of its own with one rank; start it with srun --mpi=pmi2"},
		{[]string{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=4"}, "start it with srun --mpi=pmi2, or grun -n N"},
		{[]string{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1"}, ""},
		{[]string{"SLURM_PROCID=0"}, ""},
		{[]string{"PMIX_RANK=1", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4"}, ""},
		{[]string{"PMI_RANK=1"}, ""},
		{[]string{"PMI_RANK=0", "PMI_SIZE=2", "PMI_FD=3"}, ""},
		{append(Env{JobID: "j", Size: 1, LocalSize: 1, LocalCores: 1, Addr: "a:1", Secret: testSecret}.Vars(), "PMI_RANK=0"), ""},
		{nil, ""},
	} {
		if got := foreign(lookupIn(c.vars)); c.want == "" {
			require.Empty(t, got, c.vars)
		} else {
			require.Contains(t, got, c.want, c.vars)
		}
	}
}
