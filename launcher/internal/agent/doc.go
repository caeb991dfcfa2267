//go:build linux

// Package agent runs the ranks of one host. On grun's own host the agent is part of grun,
// and hands files to the ranks. On another host it is a process of its own ([Serve]), and
// the files of the ranks are streams to grun.
//
//	Agent
//	 |-- placement   cores of this host, for each rank
//	 |-- spawner     one locked thread that forks every rank
//	 |-- errors      the pipe that takes the final errors of the ranks
//	 |-- reserved    memory that the ranks of this host commit, see memory.Reservations
//	 `-- guardians   two processes that clean up if this one is killed
//
// # Lifecycle
//
//	plan -> programs arrive -> ready -> go -> ranks start, end -> end -> sweep -> gone
//
// An agent of another host ends at once when its stream of bytes ends: it kills the ranks
// and sweeps.
//
// # Nothing stays behind
//
// The kernel kills the ranks when the thread that forked them ends (Pdeathsig).
// It does not kill their children; the guardians do. These are processes of their
// own sessions and hold pipes. When a pipe ends, the agent is gone and its
// guardian sweeps: it kills every process whose environment names this job and this host,
// and removes programs that grun sent. The agent sweeps itself at its normal end. If a user or
// Slurm kills the agent and its guardians together, the next agent on the host removes the
// programs.
//
// A daemon stays behind if it has left its session and its parents, and has cleared its
// environment: nothing then ties it to the job.
package agent
