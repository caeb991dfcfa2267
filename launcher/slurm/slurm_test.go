//go:build linux

package slurm

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/launcher/hosts"
)

// in returns the variables of a job, with others on top of them.
func in(vars ...string) func(string) (string, bool) {
	all := map[string]string{envJob: "7", envNodes: "eco[1-2,07]", envTasks: "3(x2),1"}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		all[name] = value
	}
	return func(name string) (string, bool) { value, ok := all[name]; return value, ok }
}

func TestFromEnvGivesEachNodeASlotForEachTask(t *testing.T) {
	nodes := func(slots ...int) (list []hosts.Host) {
		for i, name := range []string{"eco1", "eco2", "eco07"} {
			list = append(list, hosts.Host{Name: name, Slots: slots[i]})
		}
		return list
	}
	for name, c := range map[string]struct {
		vars []string
		want Allocation
	}{
		"tasks":              {nil, Allocation{Job: "7", Nodes: nodes(3, 3, 1)}},
		"tasks of some CPUs": {[]string{envTaskCPUs + "=4"}, Allocation{Job: "7", Nodes: nodes(3, 3, 1), TaskCPU: 4}},
		"CPUs without tasks": {[]string{envTasks + "=", envCPUs + "=8(x3)"}, Allocation{Job: "7", Nodes: nodes(8, 8, 8)}},
		"CPUs of tasks":      {[]string{envTasks + "=", envCPUs + "=8,2(x2)", envTaskCPUs + "=4"}, Allocation{Job: "7", Nodes: nodes(2, 1, 1), TaskCPU: 4}},
		"one task of srun":   {[]string{envStepTasks + "=1"}, Allocation{Job: "7", Nodes: nodes(3, 3, 1)}},
		"a shell of srun":    {[]string{envStepTasks + "=7", envTerminal + "=5000"}, Allocation{Job: "7", Nodes: nodes(3, 3, 1)}},
	} {
		got, ok, err := FromEnv(in(c.vars...))
		require.NoError(t, err, name)
		require.True(t, ok, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestFromEnvFindsNoAllocationOutsideOfOne(t *testing.T) {
	for _, v := range []string{envJob + "=", envNodes + "="} {
		_, ok, err := FromEnv(in(v))
		require.NoError(t, err)
		require.False(t, ok, v)
	}
}

func TestFromEnvNamesTheWrongVariable(t *testing.T) {
	for _, v := range []string{envJob + "=x", envJob + "=-1", envNodes + "=eco[1", envTasks + "=3", envTasks + "=3(x4)", envTasks + "=0(x3)", envTasks + "=3(x3", envTasks + "=3(x2)1", envTasks + "=1,1,1,1",
		envTasks + "=3(xx)", envTaskCPUs + "=0", envTaskCPUs + "=x"} {
		_, ok, err := FromEnv(in(v))
		require.True(t, ok, v)
		var wrong *EnvError
		require.ErrorAs(t, err, &wrong, v)
		require.Equal(t, strings.SplitN(v, "=", 2)[0], wrong.Name)
	}
	_, _, err := FromEnv(in(envStepTasks + "=4"))
	var step *StepError
	require.ErrorAs(t, err, &step)
}

func FuzzRepeated(f *testing.F) {
	f.Add("3(x2),1", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n &= 1023
		list, ok := repeated(text, n)
		if ok {
			require.Len(t, list, n)
		}
	})
}

func TestAllocationHasItsNodesAndThisHost(t *testing.T) {
	a, _, err := FromEnv(in())
	require.NoError(t, err)
	require.True(t, a.Has([]hosts.Host{{Name: "eco2"}, {Name: "localhost"}}))
	require.False(t, a.Has([]hosts.Host{{Name: "eco2"}, {Name: "eco3"}}))
	require.False(t, a.Has([]hosts.Host{{Name: "eco2", User: "me"}}))
}

func TestCommandIsAStepOfTheJob(t *testing.T) {
	words := Backend{"7"}.Command(hosts.Host{Name: "eco2"}, "line of words")
	require.Equal(t, "env", words[0])
	require.Subset(t, words, []string{"srun", "--jobid=7", "--nodelist=eco2", "--overlap", "--unbuffered"})
	require.Equal(t, []string{"sh", "-c", "line of words"}, words[len(words)-3:])
}

func TestExplainNamesTheRemedy(t *testing.T) {
	h := hosts.Host{Name: "eco2"}
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	for said, want := range map[string]string{
		"srun: error: Unable to confirm allocation for job 7: Invalid job id specified\nsrun: Check SLURM_JOB_ID environment variable. Expired or invalid job 7\n": "the allocation is over: get another one by salloc or sbatch (srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 7)",
		"slurmstepd: error: *** STEP 7.0 ON eco2 STOPPED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\nsrun: error: eco2: task 0: Terminated":                      "Slurm ended the job: STEP 7.0 ON eco2 STOPPED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT",
		"srun: error: Node failure on eco2\nsrun: x": "Slurm ended the job: Node failure on eco2",
		"strange": "srun exited with code 1: strange; try srun --overlap -N1 -n1 -w eco2 true",
		"":        "srun exited with code 1; try srun --overlap -N1 -n1 -w eco2 true",
	} {
		require.EqualError(t, Backend{"7"}.Explain(h, exit(1), said), want)
	}
	require.ErrorContains(t, Backend{"7"}.Explain(h, syscall.WaitStatus(9), ""), "srun was ended by the signal killed")
}

func TestEndedIsEmptyUnlessSlurmEndedTheJob(t *testing.T) {
	require.Empty(t, Backend{}.Ended("srun: error: eco2: task 0: Exited with exit code 9"))
	require.Equal(t, "Slurm ended the job: STEP 5.1 ON node1 STOPPED AT 2026-11-23T18:34:16",
		Backend{}.Ended("srun: Job step aborted\nslurmstepd-node1: error: *** STEP 5.1 ON node1 STOPPED AT 2026-11-23T18:34:16 ***\n"))
}
