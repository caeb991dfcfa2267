package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/tuned"
)

// TestTuneMeasuresAndLaterJobsUseIt makes the same calls as a user.
func TestTuneMeasuresAndLaterJobsUseIt(t *testing.T) {
	cache := "XDG_CACHE_HOME=" + t.TempDir()
	run := func(args ...string) (int, string, string) {
		j := newJob(t, args...)
		j.cmd.Env = append(j.cmd.Env, cache, "GRUN_EXPLAIN=collectives")
		code := j.run(t)
		return code, j.stdout.String(), j.stderr.String()
	}
	code, _, stderr := run("tune", "--show")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nothing was measured here yet")

	code, stdout, stderr := run("tune", "--time", "200ms", "--ranks", "2", "--provider", "shm,tcp", "--max", "4KiB", "--only", "all-reduce,broadcast")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "measuring tcp, 2 ranks")
	require.NotContains(t, stderr, "gopgas:", "no explanations while it measures")
	require.Contains(t, stdout, "Saved in ")

	code, stdout, stderr = run("tune", "--show")
	require.Zero(t, code, stderr)
	for _, word := range []string{"all-reduce", "broadcast", tuned.Mapped, "tcp", "any size"} {
		require.Contains(t, stdout, word)
	}
	_, file, _ := strings.Cut(stdout, "/")
	file = "/" + file[:strings.Index(file, ": ")]
	table, _, err := tuned.Load(file)
	require.NoError(t, err)
	require.Empty(t, table.For("tcp", 3))
	require.NotEmpty(t, table.For("tcp", 2))

	// grun's own ranks make calls; the test does not need their times.
	calls := []string{"-n", "2", grunPath, "tune", "--" + asRankFlag, "--provider", "shm", "--time", "1ms", "--max", "64", "--only", "scan"}
	code, _, stderr = run(calls...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "(measured to be best here, in "+file+")")
	require.NotContains(t, stderr, "not used")

	code, _, stderr = run(append([]string{"-x", "GRUN_TUNED=off"}, calls...)...)
	require.Zero(t, code, stderr)
	require.NotContains(t, stderr, "measured to be best")

	code, _, stderr = run(append([]string{"-x", "GRUN_TUNED=" + grunPath}, calls...)...)
	require.Zero(t, code, stderr)
	require.Equal(t, 1, strings.Count(stderr, "is not used"), stderr)
	require.NotContains(t, stderr, "measured to be best")
}

func TestTuneNamesTheWrongFlag(t *testing.T) {
	for want, args := range map[string][]string{
		"one rank has nothing to choose":                             {"--ranks", "1"},
		`--provider "ether"`:                                         {"--provider", "ether"},
		`--only "gossip"; choose from broadcast, reduce, all-reduce`: {"--only", "gossip"},
		"--max 1: want a size":                                       {"--max", "1"},
		"--time: want":                                               {"--time", "0"},
		"unknown command":                                            {"now"},
	} {
		code, _, stderr := grun(t, append([]string{"tune"}, args...)...)
		require.Equal(t, usageError, code, want)
		require.Contains(t, stderr, want)
	}
	code, stdout, _ := grun(t, "tune", "-h")
	require.Zero(t, code)
	require.Contains(t, stdout, "GRUN_TUNED=off")
	require.NotContains(t, stdout, asRankFlag)
}

func TestTuneSavesNothingWhenARankFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	j := newJob(t, "tune", "--time", "1s", "--ranks", "2", "--provider", "shm", "--output", file)
	j.cmd.Env = append(j.cmd.Env, "GRUN_HEAP=64KiB")
	require.NotZero(t, j.run(t))
	require.Contains(t, j.stderr.String(), "shm, 2 ranks")
	require.NoFileExists(t, file)
}

// of is a sample of all-reduce on tcp between two.
func of(bytes int, algorithm string, chosen bool, micros, least float64) sample {
	return sample{"all-reduce", "tcp", 2, bytes, algorithm, chosen, micros, least}
}

func TestRulesTakeOnlyAlgorithmsThatAreClearlyFaster(t *testing.T) {
	require.Equal(t, []tuned.Rule{
		{Collective: "all-reduce", Path: "tcp", Members: 2, UpTo: 256, Algorithm: "a", Micros: 5},
		{Collective: "all-reduce", Path: "tcp", Members: 2, UpTo: 16384, Algorithm: "b", Micros: 80, Instead: "a", InsteadMicros: 200},
		{Collective: "all-reduce", Path: "tcp", Members: 2, Algorithm: "c", Micros: 1000},
	}, rulesOf([]sample{
		of(8, "a", true, 4, 3.9), of(8, "b", false, 3.9, 3.8), // not by enough
		of(64, "a", true, 5, 2), of(64, "b", false, 4, 4), // it was quicker once
		of(1024, "a", true, 100, 99), of(1024, "b", false, 50, 50),
		of(4096, "a", true, 200, 190), of(4096, "b", false, 80, 80),
		of(65536, "b", false, 1200, 1200), of(65536, "c", true, 1000, 1000),
	}))
	require.Empty(t, rulesOf(nil))
}

func TestBetweenReturnsASizeBetweenTwoSizes(t *testing.T) {
	require.Equal(t, 16, between(8, 32))
	require.Equal(t, 8, between(8, 9))
	require.Equal(t, 1<<21, between(1<<20, 1<<22))
}

func TestRulesAreATable(t *testing.T) {
	var out strings.Builder
	printRules(&out, []tuned.Rule{
		{Collective: "scan", Path: "tcp", Members: 4, UpTo: 4096, Algorithm: "linear", Micros: 12.34, Instead: "recursive-doubling", InsteadMicros: 20},
		{Collective: "scan", Path: "tcp", Members: 4, Algorithm: "recursive-doubling", Micros: 1000},
	}, func(tuned.Rule) bool { return true })
	require.Equal(t, ""+
		"collective  path  ranks  up to     by                  us    in place of         us\n"+
		"scan        tcp   4      4.0 KiB   linear              12.3  recursive-doubling  20\n"+
		"scan        tcp   4      any size  recursive-doubling  1000                      \n", out.String())
	out.Reset()
	printRules(&out, nil, nil)
	require.Contains(t, out.String(), "nothing")
}

func TestTheFeedSeparatesSamplesFromOtherOutput(t *testing.T) {
	var news strings.Builder
	f := &tuneFeed{news: &news, title: "tcp, 2 ranks"}
	for _, part := range []string{`{"sample":{"collective":"scan","pa`, `th":"tcp","members":2,"bytes":8,"algorithm":"linear","micros":1.5}}` + "\n" + `{"done":0.5}`, "\n"} {
		n, err := f.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, []sample{{Collective: "scan", Path: "tcp", Members: 2, Bytes: 8, Algorithm: "linear", Micros: 1.5}}, f.samples)
	require.Equal(t, 50, f.shown)
	require.NoError(t, f.err)
	_, err := f.Write([]byte("hello\n"))
	require.NoError(t, err)
	require.ErrorContains(t, f.err, "hello")
}

func TestBatchesFillTheirShareOfTime(t *testing.T) {
	for _, c := range []struct {
		share time.Duration
		n     int
		want  time.Duration
	}{
		{0, 3, 0},
		{-time.Second, 3, 0},
		{enough * 10 * tuneBatch, 10, tuneBatch},
		{enough * 100 * tuneBatch, 10, 10 * tuneBatch},
		{2 * few * 10 * tuneBatch / 4, 10, tuneBatch / 4},
	} {
		require.Equal(t, c.want, batchFor(c.share, c.n), "%v for %d", c.share, c.n)
	}
}
