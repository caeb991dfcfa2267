//go:build linux

package slurm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/launcher/hosts"
)

// The variables that Slurm sets in an allocation.
const (
	envJob      = "SLURM_JOB_ID"
	envNodes    = "SLURM_JOB_NODELIST"      // eco[1-2,7]
	envTasks    = "SLURM_TASKS_PER_NODE"    // 2(x3),1
	envCPUs     = "SLURM_JOB_CPUS_PER_NODE" // the same form
	envTaskCPUs = "SLURM_CPUS_PER_TASK"     // set if the user asked for it

	// These are set in processes that srun starts.
	envStepTasks = "SLURM_STEP_NUM_TASKS"
	envTerminal  = "SLURM_PTY_PORT" // srun --pty runs a shell for a user
)

// An Allocation holds the nodes that Slurm has given to a job.
type Allocation struct {
	Job     string       // its number
	Nodes   []hosts.Host // with a slot for each task
	TaskCPU int          // CPUs of each task, if the user asked for a number; else 0
}

// An EnvError is a variable of Slurm with a value that no Slurm sets.
type EnvError struct{ Name, Value, Want string }

func (e *EnvError) Error() string {
	return fmt.Sprintf("environment variable %s=%q: want %s; name hosts with -H, or start grun by salloc or sbatch", e.Name, e.Value, e.Want)
}

// A StepError reports that srun started grun, with several tasks.
type StepError struct{ Tasks string }

func (e *StepError) Error() string {
	return fmt.Sprintf("srun started %s gruns, and each would start the whole job: write grun in place of srun, as in salloc -n %s grun ./prog, or srun --mpi=pmi2 ./prog without grun",
		e.Tasks, e.Tasks)
}

// FromEnv reads the allocation in which this process runs. ok is false outside of one.
// lookup is os.LookupEnv, or stands for it.
func FromEnv(lookup func(string) (string, bool)) (a Allocation, ok bool, err error) {
	get := func(name string) string { value, _ := lookup(name); return value }
	if a.Job = get(envJob); a.Job == "" || get(envNodes) == "" {
		return Allocation{}, false, nil
	}
	if n := get(envStepTasks); n != "" && n != "1" && get(envTerminal) == "" {
		return a, true, &StepError{n}
	}
	if _, err := strconv.ParseUint(a.Job, 10, 32); err != nil {
		return a, true, &EnvError{envJob, a.Job, "a number"}
	}
	if a.Nodes, err = hosts.ReadList(get(envNodes)); err != nil {
		return a, true, &EnvError{envNodes, get(envNodes), "a list of nodes (" + err.Error() + ")"}
	}
	if text := get(envTaskCPUs); text != "" {
		if a.TaskCPU, err = strconv.Atoi(text); err != nil || a.TaskCPU < 1 {
			return a, true, &EnvError{envTaskCPUs, text, "a number from 1"}
		}
	}
	return a, true, a.setSlots(get)
}

// setSlots gives each node a slot for each of its tasks. Where Slurm knows no tasks, there
// is one for each of the CPUs, or for each TaskCPU of them.
func (a *Allocation) setSlots(get func(string) string) error {
	name, share := envTasks, 1
	if get(name) == "" {
		name, share = envCPUs, max(a.TaskCPU, 1)
	}
	counts, ok := repeated(get(name), len(a.Nodes))
	if !ok {
		return &EnvError{name, get(name), fmt.Sprintf("numbers for %d nodes, such as 2(x3),1", len(a.Nodes))}
	}
	for i := range a.Nodes {
		a.Nodes[i].Slots = max(counts[i]/share, 1)
	}
	return nil
}

// repeated expands 2(x3),1 to 2, 2, 2, 1: n numbers from 1.
func repeated(text string, n int) (list []int, ok bool) {
	for item := range strings.SplitSeq(text, ",") {
		number, times, isRepeated := strings.Cut(item, "(x")
		if !isRepeated {
			times = "1)"
		}
		times, closed := strings.CutSuffix(times, ")")
		count, err := strconv.Atoi(number)
		repeats, timesErr := strconv.Atoi(times)
		if err != nil || timesErr != nil || !closed || count < 1 || repeats < 1 || repeats > n-len(list) {
			return nil, false
		}
		for range repeats {
			list = append(list, count)
		}
	}
	return list, len(list) == n
}

// Has reports whether all hosts are nodes of the allocation, or this host.
func (a Allocation) Has(list []hosts.Host) bool {
	nodes := make(map[string]bool)
	for _, n := range a.Nodes {
		nodes[n.Name] = true
	}
	for _, h := range list {
		if !h.IsThis() && (h.User != "" || !nodes[h.Name]) {
			return false
		}
	}
	return true
}
