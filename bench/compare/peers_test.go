//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestMain runs the echo of a probe where a test starts this program as one.
func TestMain(m *testing.M) {
	if code, ours := echoed(os.Getenv(echoEnv)); ours {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestProbeMeasuresTheDistanceAgainAndAgain(t *testing.T) {
	p, err := newProbe(t.Context())
	require.NoError(t, err)
	if p == nil {
		t.Skip("one core has no distance to another")
	}
	for range 3 {
		// A busy machine may hold the echo up for longer than a measurement takes: no result.
		require.GreaterOrEqual(t, p.distance(), time.Duration(0))
	}
	require.NoError(t, p.close())
	require.True(t, p.echo.ProcessState.Success())
	var none *probe
	require.Zero(t, none.distance())
	require.NoError(t, none.close())
}

func TestEchoSendsEachLineBack(t *testing.T) {
	l := &probeLines{}
	deadline := time.Now().Add(time.Hour)
	ended := make(chan struct{})
	go func() { defer close(ended); l.echo(deadline) }()
	for range 100 {
		require.True(t, l.trip(deadline))
	}
	require.Equal(t, uint64(100), l.back.Load())
	l.stop()
	<-ended
	require.False(t, l.trip(time.Now()), "no echo answers")
	l.begin()
	require.Zero(t, l.there.Load()+l.back.Load())
	l.echo(time.Now()) // the deadline ends it
}

func TestEchoRefusesWrongCores(t *testing.T) {
	_, is := echoed("")
	require.False(t, is)
	code, is := echoed("one")
	require.True(t, is)
	require.Equal(t, 2, code)
}

// turnsOf makes turns of one group: a map from system to its figures, one a round.
func turnsOf(before time.Duration, systems map[string][]float64) (turns []turn) {
	for name, medians := range systems {
		for round, m := range medians {
			turns = append(turns, turn{Group: "small", work: work{Provider: "shm", Ranks: 2, Bound: true, Buffers: 1}, Round: round, System: name,
				Limit: name == "limit", Before: before, After: before, Load: "1.0",
				Figures: []figure{{System: name, Benchmark: "put_latency", Size: 8, Unit: "us", Min: m, Median: m, P99: m}}})
		}
	}
	return turns
}

func TestBestPeerIsTheOneOfTheBestMedian(t *testing.T) {
	turns := turnsOf(50, map[string][]float64{ours: {2, 2, 4}, "a": {3, 3, 3}, "b": {1, 2, 90}, "limit": {1, 1, 1}})
	lines := linesOf(rowsOf(turns))
	require.Len(t, lines, 1)
	l := lines[0]
	require.Equal(t, []string{"b", "limit"}, []string{l.Best, l.Limit}, "one bad round does not make a peer bad")
	require.Equal(t, []float64{4. / 90, 1, 2}, l.Ratio.ratios)
	require.Equal(t, []float64{2, 2, 4}, l.OfLimit.ratios)
	require.Equal(t, []float64{2, 2, 1}, []float64{l.Ours, l.Peer, l.Low})
	for i := range turns {
		turns[i].Figures[0].Unit = "MB/s"
	}
	l = linesOf(rowsOf(turns))[0]
	require.Equal(t, "a", l.Best, "more is better")
	require.Equal(t, []float64{0.75, 1.5, 1.5}, l.Ratio.ratios)
}

func TestRoundsAcrossAFlipGiveNoRatio(t *testing.T) {
	turns := turnsOf(50, map[string][]float64{ours: {2, 2, 2, 2}, "a": {1, 1, 1, 1}})
	for i := range turns {
		switch turns[i].Round {
		case 0:
			turns[i].Before, turns[i].After = 140, 140 // both turns saw far cores
		case 1:
			if turns[i].System == ours {
				turns[i].After = 140 // within a turn
			}
		case 2:
			if turns[i].System == "a" {
				turns[i].Before, turns[i].After = 140, 140 // between the turns
			}
		}
	}
	c := linesOf(rowsOf(turns))[0].Ratio
	require.Equal(t, []float64{2, 2}, c.ratios)
	require.Equal(t, 2, c.flipped)
	require.False(t, flipped(sample{near: 0, far: 500}, sample{near: 50, far: 50}), "a probe that was held up drops nothing")
}

func TestRoundThatASystemLacksGivesNoRatio(t *testing.T) {
	lines := linesOf(rowsOf(turnsOf(50, map[string][]float64{ours: {2, 2}, "a": {1}})))
	require.Equal(t, []float64{2}, lines[0].Ratio.ratios)
	require.Empty(t, linesOf(rowsOf(turnsOf(50, map[string][]float64{"a": {1}}))), "without gopgas there is no row")
	alone := linesOf(rowsOf(turnsOf(50, map[string][]float64{ours: {2}})))[0]
	require.Equal(t, "-", alone.Ratio.String())
	require.Zero(t, alone.Ratio.median())
}

func TestFiguresAreReadAmongWordsOfALauncher(t *testing.T) {
	out := `WARNING: a launcher says something
{"benchmark":"coll_scan_slices","provider":"shm","mapped":true,"ranks":2,"size":8,"unit":"us","min":1,"median":2,"p99":3}
{"benchmark":"put_notify_latency_send","ranks":2,"size":8,"unit":"us","min":1,"median":3,"p99":3}
{"benchmark":"memory","ranks":2,"size":8,"unit":"us","min":0,"median":0,"p99":0}
{"benchmark":"put_latency","ranks":2,"si`
	figures, err := readFigures("x", []byte(out))
	require.NoError(t, err)
	require.Equal(t, []figure{{"x", "coll_scan", 8, "us", 1, 2, 3}, {"x/send", "put_notify_latency", 8, "us", 1, 3, 3}}, figures)
	_, err = readFigures("x", []byte("{nonsense\n"))
	require.ErrorContains(t, err, "x printed")
}

func TestSystemThatFailsCountsWithWhatItPrinted(t *testing.T) {
	s := system{name: "x", command: func(*group, time.Duration) []string {
		return []string{"sh", "-c", `echo '{"benchmark":"b","size":8,"unit":"us","min":1,"median":1,"p99":1}'; echo cause >&2; exit 3`}
	}}
	figures, err := s.run(t.Context(), &group{}, time.Millisecond, time.Hour)
	require.ErrorContains(t, err, "cause")
	require.Len(t, figures, 1)
	s.command = func(*group, time.Duration) []string { return []string{"sleep", "1000"} }
	_, err = s.run(t.Context(), &group{}, time.Millisecond, time.Millisecond)
	require.Error(t, err, "the limit ends it")
}

func TestFigureOfAGroupFitsItsLimit(t *testing.T) {
	for _, g := range allGroups(usualRanks()) {
		for _, systems := range []int{1, 5, 9} {
			each := g.figure(time.Minute, systems, 4)
			require.GreaterOrEqual(t, each, leastFigure)
			require.LessOrEqual(t, each, mostFigure)
			if each > leastFigure {
				require.LessOrEqual(t, 4*time.Duration(systems)*(jobStart+time.Duration(g.cells())*each), time.Minute, g.name)
			}
		}
	}
}

func TestQuickGroupsTogetherStayUnderThreeMinutes(t *testing.T) {
	o, err := parse([]string{"-quick"})
	require.NoError(t, err)
	groups := o.chosen()
	require.NotEmpty(t, groups)
	require.Less(t, time.Duration(len(groups))*o.limit(len(groups)), 3*time.Minute)
	all, err := parse(nil)
	require.NoError(t, err)
	require.Greater(t, len(all.chosen()), len(groups))
	one, err := parse([]string{"-quick", "-group", "lockstep", "-provider", "tcp"})
	require.NoError(t, err)
	require.Len(t, one.chosen(), 1, "a group that is named runs")
	require.Equal(t, "tcp", one.chosen()[0].Provider)
	more, err := parse(strings.Fields("-group collectives-short -provider shm -ranks 12,16"))
	require.NoError(t, err)
	require.Len(t, more.chosen(), 2)
	require.Equal(t, 16, more.chosen()[1].Ranks)
}

func TestOptionsOfPeersAreChecked(t *testing.T) {
	for args, said := range map[string]string{
		"-group nonsense":  "want some of small",
		"-provider ibv":    "shm and tcp",
		"-each 1ms":        "at least 1s",
		"-rounds 0":        "at least 1",
		"-ranks 4,x":       "numbers of ranks",
		"-ranks 1":         "at least 2",
		"HEAD":             "-ab OLD NEW",
		"-quick -ab a b c": "two versions",
	} {
		_, err := parse(strings.Fields(args))
		require.ErrorContains(t, err, said, args)
	}
}

// TestCommandsGiveAllSystemsTheSameWork compares the arguments of gopgas and of a peer.
func TestCommandsGiveAllSystemsTheSameWork(t *testing.T) {
	g := &group{work: work{Provider: "tcp", Ranks: 4, Bound: true, Buffers: 64, Lockstep: true},
		benchmarks: []string{"coll_barrier", "coll_scan", "put_notify_latency"}, sizes: []int{8, 4096}}
	require.Equal(t, "d/grun -n 4 --provider tcp --bind-to core d/bench -json -exact -size 8,4096 -time 20ms -buffers 64 -lockstep coll_barrier coll_scan_slices put_notify_latency",
		strings.Join(gopgas("d", g, 20*time.Millisecond), " "))
	require.Equal(t, "-b 64 -l 0.02 8,4096 coll_barrier coll_barrier_send coll_barrier_test coll_scan coll_scan_send coll_scan_test put_notify_latency put_notify_latency_send put_notify_latency_test",
		strings.Join(peerArgs(g, 20*time.Millisecond), " "))
	require.Equal(t, []string{"bare", "shmem", "coll", "rma"}, programsOf(g))
	require.Equal(t, "cold,lockstep", g.work.String())
}

// TestBenchHasTheBenchmarksOfAllGroups asks bench for each name.
func TestBenchHasTheBenchmarksOfAllGroups(t *testing.T) {
	var known strings.Builder
	files, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		known.Write(text)
	}
	for _, g := range allGroups(usualRanks()) {
		for _, b := range g.benchmarks {
			name := strings.TrimPrefix(strings.TrimPrefix(b, "coll_"), "beside_")
			require.True(t, strings.Contains(known.String(), `"`+b+`"`) || strings.Contains(known.String(), `{"`+name+`", "`), b)
		}
	}
}

// TestRawFileOfARunGivesItsTablesAgain writes turns as a run does and reports them from the file.
func TestRawFileOfARunGivesItsTablesAgain(t *testing.T) {
	dir := t.TempDir()
	turns := turnsOf(50, map[string][]float64{ours: {2, 2, 2}, "peer": {1, 1, 1}, "limit": {1, 1, 1}})
	for i := range turns { // a second size makes a curve
		f := turns[i].Figures[0]
		f.Size, f.Median = 64, 2*f.Median
		turns[i].Figures = append(turns[i].Figures, f)
	}
	turns[0].Error = "a <cause>"
	raw, err := os.Create(filepath.Join(dir, "raw"))
	require.NoError(t, err)
	for i := range turns {
		require.NoError(t, json.NewEncoder(raw).Encode(&turns[i]))
	}
	require.NoError(t, raw.Close())
	o, err := parse([]string{"-from", raw.Name(), "-page", filepath.Join(dir, "page")})
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, o.comparePeers(t.Context(), &out))
	require.Regexp(t, `put_latency +64 +4 +2 +peer +2.00 \(2.00-2.00\) +2 +2.00 \(2.00-2.00\) +us +3 +0`, out.String())
	require.Contains(t, out.String(), "ahead in 0 rows, behind in 2")
	page, err := os.ReadFile(filepath.Join(dir, "page"))
	require.NoError(t, err)
	require.Contains(t, string(page), "<svg")
	require.Contains(t, string(page), "a &lt;cause&gt;")
	require.Contains(t, string(page), `<tr class="behind">`)
	require.NotRegexp(t, `(src|href)=|@import|url\(http`, string(page), "the page needs no network")

	require.NoError(t, os.WriteFile(raw.Name(), []byte("{}\n{\"unknown\":1}\n"), 0o600))
	_, err = readTurns(raw.Name())
	require.ErrorContains(t, err, "turn 2")
}

// TestRotateRunsAllSystemsInTurns runs a group with our own programs.
func TestRotateRunsAllSystemsInTurns(t *testing.T) {
	if testing.Short() || testwatch.Race {
		t.Skip("builds programs, into which the race detector does not look")
	}
	dir := t.TempDir()
	ctx := t.Context() // a busy machine takes minutes to build
	require.NoError(t, command(ctx, "../..", "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+"/", "./cmd/grun", "./bench"))
	o, err := parse([]string{"-rounds", "2", "-group", "notify", "-provider", "shm"})
	require.NoError(t, err)
	g := &o.chosen()[0]
	g.sizes = []int{8, 64}
	var raw strings.Builder
	turns, err := o.rotate(ctx, io.Discard, &raw, nil, dir, g, time.Hour)
	require.NoError(t, err)
	require.Len(t, turns, 2, "no peer was built")
	require.Equal(t, 2, strings.Count(raw.String(), "\n"))
	for _, turn := range turns {
		require.Len(t, turn.Figures, 2)
		require.Equal(t, ours, turn.System)
	}
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("enough"))
	_, err = o.rotate(gone, io.Discard, io.Discard, nil, dir, g, time.Hour)
	require.ErrorContains(t, err, "enough")
}

func TestResultsRenewFiguresBetweenMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := "mine\n" + countsMark + "old" + endMark + "\nmine too\n" + behindMark + endMark + "\ncauses\n" + rowsMark + "old" + endMark + "\nend\n"
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	lines := linesOf(rowsOf(turnsOf(50, map[string][]float64{ours: {2, 2, 2}, "a": {1, 1, 1}})))
	for range 2 { // a page can be renewed again
		require.NoError(t, writeResults(path, "a day: 3 cores", lines))
		written, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, text := range []string{"mine\n", "\nmine too\n", "\ncauses\n", "\nend\n", "on a day: 3 cores.", "| 2.00 (2.00-2.00) | a |", "ahead in 0 rows, behind in 1"} {
			require.Equal(t, 1, strings.Count(string(written), text), text)
		}
		require.NotContains(t, string(written), "old")
	}
	require.NoError(t, os.WriteFile(path, []byte("no marks"), 0o600))
	require.ErrorContains(t, writeResults(path, "a day: 3 cores", lines), countsMark)
}
