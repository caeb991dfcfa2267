//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// need returns the path of a program. Without it the test skips, unless make mpi runs it.
func need(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("GOPGAS_MPI") == "" {
		t.Skipf("%v: make mpi installs it", err)
	}
	require.NoError(t, err)
	return path
}

// mpiProgram compiles testdata/mpi.c with MPICH's compiler.
func mpiProgram(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "mpi")
	out, err := exec.Command(need(t, "mpicc.mpich"), "-Wall", "-Wextra", "-Werror", "-o", path, "testdata/mpi.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func TestProgramsOfMPICHRunUnderGrun(t *testing.T) {
	program := mpiProgram(t)
	t.Setenv(bootstrap.EnvSSH, fakeSSH(t))
	for local, args := range map[string][]string{"4": {"-n", "4"}, "2": {"-H", "a:2,b:2"}} {
		code, stdout, stderr := grun(t, append(args, "--tag-output", program)...)
		require.Equal(t, 0, code, stderr)
		lines := regexp.MustCompile(`(?m)^\[(\d)(?:@[ab])?\] rank (\d) of 4: rank (\d) was here, sum 6, `+local+` on this host$`).FindAllStringSubmatch(stdout, -1)
		require.Len(t, lines, 4, stdout)
		for _, m := range lines {
			require.Equal(t, m[1], m[2])
			require.Contains(t, "03 10 21 32", m[2]+m[3])
		}
	}
}

func TestFailuresOfProgramsOfMPICHAreNamed(t *testing.T) {
	program := mpiProgram(t)
	for end, want := range map[string]struct {
		code int
		line string
	}{
		"abort": {3, "called MPI_Abort with code 3"},
		"kill":  {137, "died of SIGKILL"},
		"exit":  {1, "exited without MPI_Finalize"},
		"early": {1, "exited without ever calling MPI_Init, in which other ranks wait"},
	} {
		code, _, stderr := grun(t, "-n", "2", "--grace", "100ms", program, end)
		require.Equal(t, want.code, code, stderr)
		require.Regexp(t, `(?m)^grun: rank 1 on \S+ `+want.line, stderr)
	}
	code, _, stderr := grun(t, "-n", "2", "--timeout", "2s", program, "wait")
	require.Equal(t, 124, code, stderr)
}

// TestCommandsOfTheReadmeStartAJobUnderMPI runs the README's lines with mpiexec and mpirun.
func TestCommandsOfTheReadmeStartAJobUnderMPI(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	dir := filepath.Dir(built(t, "hello")) // the lines start ./hello
	block := regexp.MustCompile(`(?m)^    ((mpiexec\.hydra|mpirun) -n 4 .*)$`).FindAllStringSubmatch(string(readme), -1)
	require.Len(t, block, 2)
	for _, line := range block {
		t.Run(line[2], func(t *testing.T) {
			program := line[2]
			if program == "mpirun" {
				program += ".openmpi" // as Debian calls it beside MPICH's
			}
			command, _, _ := strings.Cut(strings.Replace(line[1], line[2], need(t, program), 1), "#")
			cmd := exec.CommandContext(testwatch.Context(t, testwatch.Processes(testwatch.Marked("PWD="+dir))), "sh", "-c", command)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PWD="+dir, "GRUN_HEAP=1M", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
				"OMPI_MCA_rmaps_base_oversubscribe=1")
			_, err := cmd.StdinPipe() // stays open: mpiexec.hydra may die of SIGPIPE as it tells ranks that end of the end of its input
			require.NoError(t, err)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			for rank, left := range []string{"3", "0", "1", "2"} {
				require.Contains(t, string(out), "rank "+string(rune('0'+rank))+" of 4: rank "+left+" was here\n")
			}
		})
	}
}
