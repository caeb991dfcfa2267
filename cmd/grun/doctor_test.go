//go:build linux

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestDoctorFindsThisMachineFitForJobs(t *testing.T) {
	code, stdout, stderr := grun(t, "doctor")
	require.Equal(t, 0, code, stdout+stderr)
	require.NotContains(t, stdout, "FAIL")
	for _, c := range checks() {
		require.Contains(t, stdout, c.name)
	}
}

func TestDoctorNamesTheRemedy(t *testing.T) {
	var out strings.Builder
	worst := examine(&out, []check{
		{"good", func() finding { return finding{verdict: ok, text: "fine", mend: "nothing"} }},
		{"bad", func() finding { return failing("look", errors.New("boom"), "mend it") }},
		{"so so", func() finding { return finding{warn, "slow", "tune it"} }},
	})
	require.Equal(t, fail, worst)
	require.Equal(t, "OK    good           fine\n"+
		"FAIL  bad            look: boom\n"+
		"                     -> mend it\n"+
		"WARN  so so          slow\n"+
		"                     -> tune it\n", out.String())
}

func TestLimitsAreJudged(t *testing.T) {
	l := limit{resource: unix.RLIMIT_AS, want: 1000, what: "of x", mend: "m"}
	require.Equal(t, finding{warn, "999 B of x", "m"}, l.judge(999))
	require.Equal(t, finding{verdict: ok, text: "1000 B of x"}, l.judge(1000))
	require.Equal(t, finding{verdict: ok, text: "unlimited of x"}, l.judge(noLimit))
	require.Equal(t, fail, judgeDescriptors(unix.Rlimit{Cur: 64, Max: 64}).verdict)
	require.Equal(t, warn, judgeDescriptors(unix.Rlimit{Cur: 1024, Max: 1024}).verdict)
	require.Equal(t, ok, judgeDescriptors(unix.Rlimit{Cur: 1024, Max: 1 << 20}).verdict)
}

func TestCoresAndClocksAreJudged(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	require.Equal(t, ok, judgeCores(8, 8, 8).verdict)
	require.Equal(t, warn, judgeCores(4, 8, 4).verdict)
	require.Equal(t, warn, judgeCores(1, 1, 1).verdict)
	require.Contains(t, judgeCores(8, 8, 2).text, "control group")
	require.Equal(t, ok, judgeClock("tsc").verdict)
	require.Equal(t, warn, judgeClock("hpet").verdict)
}

func TestDoctorSaysHowMuchMemoryRanksCanTake(t *testing.T) {
	require.Equal(t, finding{verdict: ok, text: "4.0 GiB left for symmetric heaps, bounded by the host"}, judgeMemory(4<<30, "the host"))
	require.Equal(t, warn, judgeMemory(1<<20, "memory cgroup /job").verdict)
	require.NotContains(t, checkMemory().text, "8.0 EiB", "this host has a bound")
}

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 29: "1.5 GiB", 1 << 63: "8.0 EiB"} {
		require.Equal(t, want, bytesText(n))
	}
}
