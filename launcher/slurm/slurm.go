//go:build linux

// Package slurm reaches the nodes of a Slurm allocation by srun.
//
//	salloc, sbatch -> SLURM_JOB_NODELIST and others -- [FromEnv] --> [Allocation]
//	                                                                    |
//	grun -- [Backend] --> srun -w node (a step) --> agent on the node
//
// Each node has a step of its own. srun carries standard input and output, as ssh does. So
// grun listens at no port for other hosts, and no secret is on a command line. Slurm ends the steps with the job.
package slurm

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/gopgas/gopgas/launcher/hosts"
)

// A Backend runs commands on the nodes of a job.
type Backend struct {
	Job string // its number
}

// Name names the command in errors.
func (b Backend) Name() string { return "srun" }

// unset lists variables that would change srun's meaning. Users set them for steps of their
// own, or salloc and sbatch do.
var unset = []string{
	// The standard output of the step would have other bytes, or another file.
	"SLURM_LABELIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_TASK_PROLOG", "SLURM_TASK_EPILOG",
	// The step would have less than all CPUs, memory and GPUs of the job on its node, or bind its task.
	"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_GPU", "SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_EXACT", "SLURM_EXCLUSIVE",
	"SLURM_HINT", "SLURM_MEM_BIND", "SLURM_THREADS_PER_CORE",
	// One task would contradict them.
	"SLURM_DISTRIBUTION", "SLURM_DIST_PLANESIZE", "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_SOCKET",
	// The step would end early, not begin, or run another program.
	"SLURM_TIMELIMIT", "SLURM_SIGNAL", "SLURM_IMMEDIATE", "SLURM_TEST_EXEC", "SLURM_BCAST",
}

// Command returns the command that has a shell on a node run line. It is a step of the job, with
// all of the job's CPUs there. Only --unbuffered passes bytes on that end no line.
//
// A shell waits for srun. When grun is killed, the kernel kills the shell, and srun passes the end
// of its input on: the agent sweeps. A killed srun would have Slurm kill the agent first.
func (b Backend) Command(host hosts.Host, line string) []string {
	words := []string{"env"}
	for _, name := range unset {
		words = append(words, "-u", name)
	}
	return append(words, "sh", "-c", `srun "$@"; exit $?`, "srun", "--jobid="+b.Job, "--nodes=1", "--ntasks=1", "--nodelist="+host.Name, "--overlap",
		"--unbuffered", "--mpi=none", "--cpu-bind=none", "--export=ALL", "--chdir=/", "--job-name=grun", "sh", "-c", line)
}

// remedies gives the next step for a text of srun.
var remedies = []struct{ said, remedy string }{
	{"Invalid job id specified", "the allocation is over: get another one by salloc or sbatch"},
	{"already completing or completed", "the allocation ends: get another one by salloc or sbatch"},
	{"Unable to confirm allocation", "Slurm does not know the allocation any more: get another one by salloc or sbatch"},
	{"Unable to contact slurm controller", "Slurm's controller does not answer: see scontrol ping"},
	{"nodes are down", "Slurm has the node down: see sinfo -R, and get another allocation"},
	{"Node failure", "the node failed: get another allocation"},
	{"Requested node configuration is not available", "the node is not in the allocation: see scontrol show job"},
	{"unrecognized option", "grun needs Slurm 20.11 or later"},
}

// Explain returns the error of an srun that ended before a program on the node spoke. said
// is the end of its standard error.
func (b Backend) Explain(host hosts.Host, status syscall.WaitStatus, said string) error {
	said = strings.TrimSpace(said)
	if why := b.Ended(said); why != "" {
		return errors.New(why)
	}
	last := said[strings.LastIndexByte(said, '\n')+1:]
	for _, r := range remedies {
		if strings.Contains(said, r.said) {
			return fmt.Errorf("%s (%s)", r.remedy, last)
		}
	}
	how := fmt.Sprintf("exited with code %d", status.ExitStatus())
	if status.Signaled() {
		how = "was ended by the signal " + status.Signal().String()
	}
	if last != "" {
		how += ": " + last
	}
	return fmt.Errorf("srun %s; try srun --overlap -N1 -n1 -w %s true", how, host)
}

// ended finds the line by which Slurm tells why it ended a step: *** STEP 7.0 ON eco1
// FAILED AT 2026-01-01T00:00:00 ***. After an end for a reason, such as DUE TO TIME LIMIT, the
// verb is that of scancel.
var ended = regexp.MustCompile(`\*\*\* ((?:STEP|JOB) \S+ ON \S+ [A-Z]+ AT .*?) \*\*\*`)

// failed finds the line about a node that does not answer Slurm any more.
var failed = regexp.MustCompile(`Node failure on \S+`)

// Ended returns why Slurm ended the job, or "". said is the end of the standard error of an srun.
func (b Backend) Ended(said string) string {
	if found := ended.FindStringSubmatch(said); found != nil {
		return "Slurm ended the job: " + found[1]
	}
	if line := failed.FindString(said); line != "" {
		return "Slurm ended the job: " + line
	}
	return ""
}
