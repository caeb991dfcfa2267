//go:build linux

package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/launcher/hosts"
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
	require.Contains(t, stdout, tuned.Mapped)
	require.Contains(t, stdout, "2 ranks, tcp")
	_, file, _ := strings.Cut(stdout, "/")
	file = "/" + file[:strings.Index(file, ": ")]
	table, _, err := tuned.Load(file, "")
	require.NoError(t, err)
	require.Len(t, table.Settings, 2)
	first := table.Settings

	// A second measurement, of bound ranks, leaves the first in the table.
	code, _, stderr = run("tune", "--time", "50ms", "--ranks", "2", "--provider", "shm", "--max", "64", "--only", "all-reduce", "--bind-to", "core")
	require.Zero(t, code, stderr)
	table, _, err = tuned.Load(file, "")
	require.NoError(t, err)
	for _, m := range first {
		_, kept := table.For(m.Setting)
		require.True(t, kept, "%v", m.Setting)
	}
	if len(table.Settings) > 2 { // a core of this machine is less than all of it
		require.NotZero(t, table.Settings[0].BoundTo)
	}
}

// tableFor writes a table in which linear scans are faster in one setting.
func tableFor(t *testing.T, path string, s tuned.Setting) {
	here, err := tuned.Here()
	require.NoError(t, err)
	table := tuned.Table{Machines: []tuned.Machine{here}, Settings: []tuned.Measured{{Setting: s, Rules: []tuned.Rule{
		{Collective: "scan", From: 8, UpTo: 1 << 20, Algorithm: "linear"},
		{Collective: "broadcast", From: 8, UpTo: 1 << 20, Algorithm: "linear"},
	}}}}
	require.NoError(t, table.Save(path))
}

// TestJobsUseTheTableOfTheirMachine has grun's own ranks make calls; the test does not need
// their times.
func TestJobsUseTheTableOfTheirMachine(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	file, err := tableFile(nil)
	require.NoError(t, err)
	cores := goruntime.NumCPU()
	tableFor(t, file, tuned.Setting{Path: tuned.Mapped, Hosts: "2", PerCore: (1 + cores) / cores})
	measuring := []string{grunPath, "tune", "--" + asRankFlag, "--time", "1ms", "--max", "64", "--only", "scan"}
	run := func(args ...string) string {
		j := newJob(t, append(args, measuring...)...)
		j.cmd.Env = append(j.cmd.Env, "GRUN_EXPLAIN=collectives", "GRUN_VERBOSE=1")
		require.Zero(t, j.run(t), j.stderr.String())
		return j.stderr.String()
	}
	stderr := run("-n", "2", "--provider", "shm")
	require.Contains(t, stderr, "(measured to be faster here, in "+file+")")
	require.Contains(t, stderr, "is used: 2 ranks, mapped")

	for name, args := range map[string][]string{
		"more ranks": {"-n", "3", "--provider", "shm"},
		"a provider": {"-n", "2", "--provider", "tcp"},
		"messages":   {"-n", "2", "--provider", "shm", "-x", "GRUN_COLLECTIVES=messages"},
		"a binding":  {"-n", "2", "--provider", "shm", "--bind-to", "core"},
	} {
		if name == "a binding" && cores == 1 {
			continue
		}
		stderr := run(args...)
		require.NotContains(t, stderr, "measured to be faster", name)
		require.Contains(t, stderr, "is not used: ", name)
	}
	stderr = run("-n", "2", "--provider", "shm", "-x", "GRUN_TUNED=off")
	require.NotContains(t, stderr, "measured to be faster")
	require.NotContains(t, stderr, "is not used")
	stderr = run("-n", "2", "--provider", "shm", "-x", "GRUN_TUNED="+grunPath)
	require.Equal(t, 1, strings.Count(stderr, "is not used"), stderr)
	require.NotContains(t, stderr, "measured to be faster")
}

// TestRanksUseNoTableThatOneOfThemLacks gives the ranks of one job different tables.
func TestRanksUseNoTableThatOneOfThemLacks(t *testing.T) {
	dir := t.TempDir()
	cores := goruntime.NumCPU()
	setting := tuned.Setting{Path: tuned.Mapped, Hosts: "2", PerCore: (1 + cores) / cores}
	good, foreign, other := filepath.Join(dir, "good"), filepath.Join(dir, "foreign"), filepath.Join(dir, "other")
	tableFor(t, good, setting)
	require.NoError(t, (&tuned.Table{Machines: []tuned.Machine{{CPU: "another", Cores: 1000}}}).Save(foreign))
	setting.PerCore++
	tableFor(t, other, setting)
	measuring := []string{grunPath, "tune", "--" + asRankFlag, "--time", "1ms", "--max", "64", "--only", "scan"}
	for _, c := range []struct{ first, second, says string }{
		{good, good, ""},
		{good, foreign, "rank 1 on "},
		{foreign, good, "measured on another machine"},
		{good, other, "have different tables of grun tune"},
		{good, "off", "have different tables of grun tune"},
	} {
		args := append([]string{"--provider", "shm", "-n", "1", "-x", tuned.Env + "=" + c.first}, measuring...)
		args = append(append(args, ":", "-n", "1", "-x", tuned.Env+"="+c.second), measuring...)
		j := newJob(t, args...)
		j.cmd.Env = append(j.cmd.Env, "GRUN_EXPLAIN=collectives")
		require.Zero(t, j.run(t), j.stderr.String())
		stderr := j.stderr.String()
		require.Equal(t, c.says == "", strings.Contains(stderr, "measured to be faster"), stderr)
		require.Contains(t, stderr, c.says)
		require.LessOrEqual(t, strings.Count(stderr, tuned.Env), 1+strings.Count(stderr, "measured to be faster"), stderr)
	}
}

// TestCallThatOneRankCannotPlanIsLeftOutAtAll keeps the lists of candidates alike.
func TestCallThatOneRankCannotPlanIsLeftOutAtAll(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		tuner := &tuner{world: r.World}
		call := collectives.BroadcastCall(0, make([]float64, 1))
		plan, err := collectives.Plan(ctx, r.World, call)
		r.NoError(err)
		for unable := range r.N {
			left, err := tuner.unanimous(ctx, plan, r.Me != unable)
			r.NoError(err)
			r.Nil(left)
		}
		kept, err := tuner.plan(ctx, call)
		r.NoError(err)
		r.NotNil(kept)
	})
}

// TestTuneMeasuresOnTheHostsOfAJob starts ranks by a shell in place of ssh. The hosts do not
// have the table's file.
func TestTuneMeasuresOnTheHostsOfAJob(t *testing.T) {
	t.Setenv(bootstrap.EnvSSH, fakeSSH(t))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	code, stdout, stderr := grun(t, "tune", "-H", "a:2,b,c:3", "--time", "300ms", "--max", "64", "--only", "scan")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "measuring auto, 6 ranks")
	require.Contains(t, stdout, "6 ranks on 3 hosts (2+1+3), shm+tcp")
	list, err := hosts.ReadList("c:3,b,a:2")
	require.NoError(t, err)
	file, err := tableFile(list)
	require.NoError(t, err)
	require.Contains(t, stdout, "Saved in "+file)
	code, shown, stderr := grun(t, "tune", "--show", "-H", "a:2,b,c:3")
	require.Zero(t, code, stderr)
	require.Contains(t, shown, "6 ranks on 3 hosts (2+1+3), shm+tcp")

	table, err := tuned.Read(file)
	require.NoError(t, err)
	require.Len(t, table.Settings, 1)
	tableFor(t, file, table.Settings[0].Setting)
	inFile := filepath.Join(t.TempDir(), "a table.json")
	tableFor(t, inFile, table.Settings[0].Setting)
	measuring := []string{grunPath, "tune", "--" + asRankFlag, "--time", "1ms", "--max", "64", "--only", "scan"}
	for _, c := range []struct {
		args []string
		used string
		says string
	}{
		{[]string{"-H", "a:2,b,c:3"}, file, "is used: 6 ranks on 3 hosts (2+1+3)"},
		{[]string{"-H", "a:2,b,c:3", "-x", "GRUN_TUNED=" + inFile}, inFile, "is used: 6 ranks on 3 hosts (2+1+3)"},
		{[]string{"-H", "a:2,b:2,c"}, "", "is not used: 5 ranks on 3 hosts (2+2+1)"},
		{[]string{"-H", "a:2,b,c:3", "-x", "GRUN_TUNED=off"}, "", ""},
		{[]string{"-H", "a:2,b"}, "", ""},
	} {
		j := newJob(t, append(c.args, measuring...)...)
		j.cmd.Env = append(j.cmd.Env, "GRUN_EXPLAIN=collectives", "GRUN_VERBOSE=1")
		require.Zero(t, j.run(t), j.stderr.String())
		stderr := j.stderr.String()
		require.Contains(t, stderr, c.says, "%v", c.args)
		require.Equal(t, c.used != "", strings.Contains(stderr, "(measured to be faster here, in "+c.used+")"), "%v: %s", c.args, stderr)
	}
	code, _, stderr = grun(t, "-H", "a:2,b", "-x", "GRUN_TUNED="+grunPath, "true")
	require.Equal(t, usageError, code)
	require.Contains(t, stderr, "grun tune")
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

// of is a sample of all-reduce.
func of(bytes int, algorithm string, chosen bool, micros, least float64) sample {
	return sample{"all-reduce", bytes, algorithm, chosen, micros, least}
}

func TestRivalsAreClearlyFasterThanTheBuiltInChoice(t *testing.T) {
	require.Equal(t, []string{"all-reduce:1024:b", "all-reduce:4096:b"}, rivalsOf([]sample{
		of(8, "a", true, 4, 3.9), of(8, "b", false, 3.9, 3.8), // not by enough
		of(64, "a", true, 5, 2), of(64, "b", false, 4, 4), // it was quicker once
		of(1024, "a", true, 100, 99), of(1024, "b", false, 50, 50),
		of(4096, "a", true, 200, 190), of(4096, "b", false, 80, 80), of(4096, "c", false, 90, 80),
		of(65536, "b", false, 1200, 1200), of(65536, "c", true, 1000, 1000),
	}))
	require.Empty(t, rivalsOf(nil))
	for _, text := range []string{"all-reduce:8", "all-reduce:x:b", "all-reduce:0:b", "gossip:8:b"} {
		_, err := readRival(text)
		require.Error(t, err, text)
	}
	r, err := readRival("all-reduce:1024:b")
	require.NoError(t, err)
	require.Equal(t, 1024, r.bytes)
}

// TestTablesHaveNoAlgorithmThatFailedItsTrial has an algorithm that seemed twice as fast at
// all sizes, and was so at three of them.
func TestTablesHaveNoAlgorithmThatFailedItsTrial(t *testing.T) {
	var samples []sample
	var trials []trial
	for i, size := range []int{8, 64, 512, 4096, 16384} {
		samples = append(samples, of(size, "a", true, 100, 99), of(size, "b", false, 50, 49))
		trials = append(trials, trial{"all-reduce", size, "b", 50 + float64(i), "a", 100, i != 2 && i != 4})
	}
	require.Len(t, rivalsOf(samples), 5)
	require.Equal(t, []tuned.Rule{
		{Collective: "all-reduce", From: 8, UpTo: 64, Algorithm: "b", Micros: 51, Instead: "a", InsteadMicros: 100},
		{Collective: "all-reduce", From: 4096, UpTo: 4096, Algorithm: "b", Micros: 53, Instead: "a", InsteadMicros: 100},
	}, rulesOf(samples, trials))
	require.Empty(t, rulesOf(samples, nil))
	for i := range trials {
		trials[i].Faster = false
	}
	require.Empty(t, rulesOf(samples, trials))
	trials[0].Faster, trials[1].Faster, trials[1].Algorithm = true, true, "c"
	require.Len(t, rulesOf(samples, trials), 2, "two algorithms make two rules")
}

// TestTrialsFindAnAlgorithmFasterOnlyBeyondTheNoise injects times: ratio is that of the rival to
// the built-in choice, and noise multiplies each time by up to so much.
func TestTrialsFindAnAlgorithmFasterOnlyBeyondTheNoise(t *testing.T) {
	for _, c := range []struct {
		ratio, noise, drift float64
		faster              bool
	}{
		{ratio: 1, noise: 1.5, faster: false},
		{ratio: 1.3, noise: 1, faster: false},
		{ratio: 1.3, noise: 3, faster: false},
		{ratio: 0.99, noise: 1, faster: false}, // not worth a rule
		{ratio: 1, noise: 1, drift: 0.05, faster: false},
		{ratio: 1, noise: 1, drift: -0.01, faster: false},
		{ratio: 0.7, noise: 1, faster: true},
		{ratio: 0.5, noise: 1.5, drift: 0.02, faster: true},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		made := 0
		turns, err := duel(time.Hour, func(rival bool, calls int) (time.Duration, error) {
			made++
			each := 1e6 * (1 + random.Float64()*(c.noise-1)) * math.Exp(c.drift*float64(made))
			if rival {
				each *= c.ratio
			}
			return time.Duration(each * float64(calls)), nil
		})
		require.NoError(t, err)
		require.Len(t, turns, mostTurns)
		require.Equal(t, c.faster, judge(turns).faster(), "%+v: %+v", c, judge(turns))
	}
	require.False(t, judge(nil).faster())
	require.False(t, judge(make([]turn, 5)).faster(), "five turns prove nothing")

	broken := errors.New("a rank died")
	for calls := range 6 {
		_, err := duel(0, func(bool, int) (time.Duration, error) {
			if calls--; calls < 0 {
				return 0, broken
			}
			return time.Second, nil
		})
		require.ErrorIs(t, err, broken)
	}
}

// TestBoundIsThatOfTheSignTest compares with the sums of binomial coefficients.
func TestBoundIsThatOfTheSignTest(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 5: 0, 6: 6, 8: 8, 9: 8, 20: 15, 48: 32} {
		require.Equal(t, want, boundOf(n), "%d", n)
	}
}

func TestRulesAreATable(t *testing.T) {
	var out strings.Builder
	printTable(&out, &tuned.Table{Settings: []tuned.Measured{
		{Setting: tuned.Setting{Path: "tcp", Hosts: "4", PerCore: 2}, Rules: []tuned.Rule{
			{Collective: "scan", From: 8, UpTo: 4096, Algorithm: "linear", Micros: 12.34, Instead: "recursive-doubling", InsteadMicros: 20},
			{Collective: "scan", From: 65536, UpTo: 65536, Algorithm: "recursive-doubling", Micros: 1000, Instead: "linear", InsteadMicros: 2000},
		}},
		{Setting: tuned.Setting{Path: "shm+tcp", Hosts: "2+1", PerCore: 1}},
	}})
	require.Equal(t, ""+
		"\n4 ranks, tcp, 2 ranks for each core:\n"+
		"collective  from      up to     by                  us    in place of         us\n"+
		"scan        8 B       4.0 KiB   linear              12.3  recursive-doubling  20\n"+
		"scan        64.0 KiB  64.0 KiB  recursive-doubling  1000  linear              2000\n"+
		"\n3 ranks on 2 hosts (2+1), shm+tcp:\n"+
		"no algorithm is faster than the built-in choice\n", out.String())
}

func TestTheFeedSeparatesSamplesFromOtherOutput(t *testing.T) {
	var news strings.Builder
	f := &tuneFeed{news: &news, title: "measuring tcp, 2 ranks"}
	for _, part := range []string{`{"sample":{"collective":"scan","by`, `tes":8,"algorithm":"linear","micros":1.5}}` + "\n" + `{"done":0.5}`, "\n"} {
		n, err := f.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, []sample{{Collective: "scan", Bytes: 8, Algorithm: "linear", Micros: 1.5}}, f.samples)
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
