package peers

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProgramsCompileWithoutWarnings compiles each program for which this machine has a
// compiler. It skips only where there is none at all.
func TestProgramsCompileWithoutWarnings(t *testing.T) {
	dir := t.TempDir()
	missing, err := Build(t.Context(), dir)
	require.NoError(t, err)
	built := 0
	for _, c := range compilers() {
		works := c.works(t.Context())
		for _, p := range c.programs {
			_, stat := os.Stat(program(dir, p, c.library))
			require.Equal(t, works, stat == nil, "%s by %s", p, c.command)
			if stat == nil {
				built++
			}
		}
		if !works {
			require.Contains(t, missing, c.packages)
		}
	}
	if built == 0 {
		t.Skip("no compiler; install ", strings.Join(missing, " "))
	}
}

// TestBuildSaysWhatToInstall runs without any compiler.
func TestBuildSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	missing, err := Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Equal(t, []string{"gcc libc6-dev", "openmpi-bin libopenmpi-dev", "mpich libmpich-dev"}, missing)
}

// TestBuildSkipsACompilerWithoutItsHeader has compilers in PATH that fail at each file.
func TestBuildSkipsACompilerWithoutItsHeader(t *testing.T) {
	commands := t.TempDir()
	for _, c := range compilers() {
		require.NoError(t, os.WriteFile(filepath.Join(commands, c.command), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	}
	t.Setenv("PATH", commands)
	missing, err := Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Equal(t, []string{"gcc libc6-dev", "openmpi-bin libopenmpi-dev", "mpich libmpich-dev"}, missing)
}

// TestProgramOfLimitsPrintsALineForEachTaskAndSize runs it on shared memory and over a socket.
func TestProgramOfLimitsPrintsALineForEachTaskAndSize(t *testing.T) {
	if gcc := compilers()[0]; !gcc.works(t.Context()) {
		t.Skip("no gcc")
	}
	dir := t.TempDir()
	_, err := Build(t.Context(), dir)
	require.NoError(t, err)
	limit := Configs()[0]
	require.True(t, limit.Limit)
	for provider, want := range map[string]string{
		"shm": "put_latency 8, put_latency 300, cas_latency 8, coll_barrier 8",
		"tcp": "put_latency 8, put_latency 300, cas_latency 8", // a barrier is no limit of a socket
	} {
		j := Job{Dir: dir, Program: "bare", Provider: provider, Ranks: 2, Cores: 2,
			Args: strings.Fields("-b 2 0.001 8,300 put_latency cas_latency coll_barrier nonsense")}
		var seen []string
		for _, l := range run(t, limit.Command(&j)) {
			require.Positive(t, l.Median)
			require.GreaterOrEqual(t, l.P99, l.Median)
			seen = append(seen, l.Benchmark+" "+l.Size.String())
		}
		require.Equal(t, want, strings.Join(seen, ", "), provider)
	}
}

type line struct {
	Benchmark        string
	Size             json.Number
	Min, Median, P99 float64
}

func run(t *testing.T, command []string) (lines []line) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	require.NoError(t, err, "%q", command)
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var l line
		require.NoError(t, d.Decode(&l))
		lines = append(lines, l)
	}
	return lines
}

// TestCommandsBindAlike: a bound job has a flag that binds, an unbound one has none, and ranks
// that outnumber cores are bound in blocks or not at all.
func TestCommandsBindAlike(t *testing.T) {
	for _, c := range Configs() {
		bound := Job{Dir: "d", Program: "rma", Provider: "shm", Ranks: 2, Cores: 2, Bound: true}
		unbound, crowded := bound, bound
		unbound.Bound, crowded.Ranks = false, 4
		says := func(j Job) string { return strings.Join(c.Command(&j), " ") }
		require.Regexp(t, `bind-to core| -p`, says(bound), c.Name)
		require.NotRegexp(t, `bind-to core| -p( |$)`, says(unbound), c.Name)
		if !c.Limit {
			require.NotContains(t, says(crowded), "bind-to core", c.Name)
			require.NotContains(t, says(crowded), "taskset", c.Name)
			crowded.Blocks = true
			require.Contains(t, says(crowded), `sh -c exec taskset -c "$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} * 2 / 4))" "$0" "$@" d/rma`, c.Name)
		}
	}
}

// TestConfigsCoverBothWays: each provider has a limit and peers of one-sided and collective
// calls, each of them with UCX and without.
func TestConfigsCoverBothWays(t *testing.T) {
	dir := t.TempDir()
	for _, c := range compilers() {
		for _, p := range c.programs {
			require.NoError(t, os.WriteFile(program(dir, p, c.library), nil, 0o700))
		}
	}
	for _, provider := range []string{"shm", "tcp"} {
		has := map[string]string{}
		for _, c := range Configs() {
			for _, p := range []string{"rma", "coll", "shmem", "bare"} {
				if c.Runs(dir, p, provider, 2) {
					has[p] += " " + c.Name
				}
			}
			require.False(t, c.Limit && c.Runs(dir, "bare", provider, 4), "the program of limits has two processes")
		}
		for _, p := range []string{"rma", "coll"} {
			require.Contains(t, has[p], "ucx", "%s %s", provider, p)
			require.Regexp(t, "openmpi-(sm|tcp)", has[p])
			require.Contains(t, has[p], "mpich")
		}
		require.Contains(t, has["shmem"], "ucx")
		require.Contains(t, has["bare"], "limit")
	}
	for _, c := range Configs() {
		require.False(t, c.Runs(t.TempDir(), "rma", "shm", 2), "it was not built")
	}
	require.Equal(t, filepath.Join("d", "rma.mpich"), program("d", "rma", "mpich"))
}
