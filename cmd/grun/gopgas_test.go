//go:build linux

package main

import (
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// startBarriers starts three ranks that wait for each other all the time.
func startBarriers(t *testing.T, program, provider string) (*job, *watched) {
	j := newJob(t, "-n", "3", "--grace", testwatch.Patience().String(), "--provider", provider, program)
	out := startWatched(t, j)
	out.await(t, ">", 3)
	return j, out
}

func TestSurvivorsOfAKilledRankEndByThemselves(t *testing.T) {
	program := built(t, "barriers")
	for _, provider := range []string{"shm", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			traces := tracesBefore(t)
			j, out := startBarriers(t, program, provider)
			victim := regexp.MustCompile(`ready 1 <(\d+)>`).FindStringSubmatch(out.text.String())[1]
			signalAll(t, []string{victim}, syscall.SIGKILL)
			j.cmd.Wait()
			require.Equal(t, 137, j.cmd.ProcessState.ExitCode())
			require.Regexp(t, `grun: rank 1 on \S+ died of SIGKILL \(first of 3 failures\)`, j.stderr.String())
			require.Regexp(t, `rank [02]: .*rank 1`, j.stderr.String(), "the survivors say why they end")
			require.Empty(t, j.left())
			out.awaitEnd(t)
			traces.requireNone(t)
		})
	}
}

func TestRanksOfAKilledGrunAreGone(t *testing.T) {
	program := built(t, "barriers")
	for _, provider := range []string{"shm", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			traces := tracesBefore(t)
			j, out := startBarriers(t, program, provider)
			require.NoError(t, j.cmd.Process.Kill())
			j.cmd.Wait()
			t.Logf("gone after %v", gone(t, j))
			out.awaitEnd(t)
			traces.requireNone(t)
		})
	}
}

func TestRanksOfAJobThatLacksMembersNameThem(t *testing.T) {
	j := newJob(t, "-n", "2", "--start-timeout", "300ms", built(t, "barriers"), ":", "-n", "1", "sleep", "1000")
	out := startWatched(t, j)
	j.cmd.Wait()
	require.Equal(t, 1, j.cmd.ProcessState.ExitCode())
	require.Regexp(t, `ranks? (?:[01][-,])?2 did not join within 300ms`, j.stderr.String(), "on a busy machine others are late as well")
	require.Empty(t, j.left())
	out.awaitEnd(t)
}
