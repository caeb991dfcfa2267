//go:build linux

package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseTakesOptionsOfOSU(t *testing.T) {
	o, err := parse(strings.Fields("osu_put_latency -m 8:4194304 -i 1000 -x 100 -s flush -W 32 -f -z"), io.Discard)
	require.NoError(t, err)
	require.Equal(t, knobs{sync: "flush", window: 32, buffers: 1, iterations: 1000, warm: 100, tails: true}, o.knobs)
	require.Equal(t, 8, o.sizes[0])
	require.Equal(t, 4<<20, o.sizes[len(o.sizes)-1])
	require.Len(t, o.sizes, 20)
	require.True(t, o.osu && o.full)
}

func TestParseReadsPowersOfTwo(t *testing.T) {
	for args, want := range map[string][]int{
		"put_bw -m 4":             {1, 2, 4},
		"put_bw -m 3:9":           {4, 8},
		"osu_bw -m 1K:2K":         {1024, 2048},
		"osu_bw -size 5,6":        {5, 6},
		"put_bw -size 3 -m 16:16": {16},
	} {
		o, err := parse(strings.Fields(args), io.Discard)
		require.NoError(t, err, args)
		require.Equal(t, want, o.sizes, args)
	}
	o, err := parse([]string{"osu_bw"}, io.Discard)
	require.NoError(t, err)
	require.Len(t, o.sizes, 23, "OSU's default is 1 byte to 4 MiB")
}

func TestParseRefusesWrongOptionsOfOSU(t *testing.T) {
	for args, said := range map[string]string{
		"osu_put_latency -s pscw":     "flush, flush_local, lock, fence",
		"put_latency barrier -s lock": "leave -s out",
		"osu_bw -m 5:7":               "no power of two",
		"osu_bw -m x":                 "",
		"osu_bw -m 0:8":               "sizes go from",
		"osu_bw -W 0":                 "-W 0",
		"osu_bw -i -1":                "-i -1",
		"osu_bw -buffers 0":           "-buffers 0",
		"osu_bw barrier":              "run other names apart",
		"barrier osu_bw":              "run other names apart",
		"osu_nonsense":                "no benchmark",
		"barrier -json -benchstat":    "choose one",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, said, args)
	}
}

// TestNameOfOSUStandsForOneGroup: a name chooses one benchmark, or a group that prints one
// table.
func TestNameOfOSUStandsForOneGroup(t *testing.T) {
	groups := map[string]string{}
	for _, b := range benchmarks() {
		if b.osu == "" {
			continue
		}
		require.True(t, isOSU(b.osu), b.name)
		if group, known := groups[b.osu]; known {
			require.Equal(t, group, b.group, "%s and another", b.name)
			require.Regexp(t, "^overlap_", b.name)
		}
		groups[b.osu] = b.group
	}
	require.Greater(t, len(groups), 20)
}

// TestExactNameStandsForOneBenchmark: without -exact it stands for its group, too.
func TestExactNameStandsForOneBenchmark(t *testing.T) {
	for args, want := range map[string]bool{"rpipe_latency": false, "-exact rpipe_latency": true} {
		o, err := parse(strings.Fields(args), io.Discard)
		require.NoError(t, err)
		groups, err := o.groups()
		require.NoError(t, err)
		require.Len(t, groups, 1)
		require.Equal(t, want, len(groups[0]) == 1, args)
	}
}

// osuRow is the pattern by which scripts read OSU's output: numbers in columns.
var osuRow = regexp.MustCompile(`^\d+(?:\s+\d+\.\d+)+(?:\s+\d+)?$`)

// TestOutputHasOSUsColumns runs programs of each layout.
func TestOutputHasOSUsColumns(t *testing.T) {
	for args, want := range map[string]struct {
		heading string
		rows    int
	}{
		"osu_put_latency -m 8:32 -i 20 -s lock": {"# Size          Latency (us)", 3},
		"osu_get_latency -m 8:8 -i 20 -s fence": {"# Size          Latency (us)", 1},
		"osu_put_bw -m 8:16 -i 3 -W 4":          {"# Size      Bandwidth (MB/s)", 2},
		"osu_put_bibw -m 8:8 -i 3 -z":           {"# Size      Bandwidth (MB/s) P50 Tail BW(MB/s) P90 Tail BW(MB/s) P99 Tail BW(MB/s)", 1},
		"osu_mbw_mr -m 8:8 -i 3":                {"# Size                  MB/s        Messages/s", 1},
		"osu_bcast -m 8:16 -i 20":               {"# Size       Avg Latency(us)", 2},
		"osu_allreduce -m 8:16 -i 20 -f":        {"# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)        Iterations", 2},
		"osu_iallreduce -m 8:8 -i 20":           {"# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)", 1},
		"osu_barrier -i 20":                     {"# Avg Latency(us)", 0},
	} {
		out, err := bench(t, 2, strings.Fields(args))
		require.NoError(t, err, args)
		require.Contains(t, out, want.heading+"\n", args)
		rows := 0
		for line := range strings.Lines(out) {
			if osuRow.MatchString(strings.TrimRight(line, "\n")) {
				rows++
			}
		}
		require.Equal(t, want.rows, rows, "%s:\n%s", args, out)
	}
	out, err := bench(t, 3, []string{"osu_init"})
	require.NoError(t, err)
	require.Regexp(t, `(?m)^nprocs: 3, min: \d+ ms, max: \d+ ms, avg: \d+ ms$`, out)
}

// TestIterationsAreAtLeastTheGivenNumber: whole batches round up.
func TestIterationsAreAtLeastTheGivenNumber(t *testing.T) {
	for args, least := range map[string]int{"put_latency": 100, "put_bw -W 8": 800} {
		out, err := bench(t, 2, strings.Fields(args+" -json -size 8 -i 100 -z"))
		require.NoError(t, err)
		r := requireResult(t, out)
		require.GreaterOrEqual(t, r.Operations, least, args)
		require.NotNil(t, r.Tails)
		require.Positive(t, r.Tails.P50)
		require.GreaterOrEqual(t, r.Tails.Max, r.Tails.P999)
		require.GreaterOrEqual(t, r.Tails.P999, r.Tails.P50)
	}
}

// TestBatchThatADisturbanceCutShortIsRepeated: calibrate saw a slow batch of one operation.
func TestBatchThatADisturbanceCutShortIsRepeated(t *testing.T) {
	s := newSeries(&harness{knobs: knobs{tails: true}}, benchmark{unit: micros()}, task{run: func(context.Context, int) error { return nil }})
	require.True(t, s.take(lap{took: time.Millisecond, ranks: []time.Duration{3, 4}}))
	require.NoError(t, s.tails.RecordValue(5))
	s.ended = append(s.ended, 1)
	require.False(t, s.take(lap{took: time.Microsecond}), "the batch is too short for the clock")
	require.Empty(t, s.samples)
	require.Equal(t, []int{0}, s.ended)
	require.Zero(t, s.ops+int(s.tails.TotalCount()))
	require.Equal(t, 2, s.n)
	require.True(t, s.take(lap{took: batchTime}))
	require.Equal(t, []float64{batchTime.Seconds() / 2}, s.samples)
	s.n = maxBatch
	require.True(t, s.take(lap{took: time.Microsecond}), "the longest batch is taken as it is")
	s.task.senders, s.samples = 4, nil
	require.True(t, s.take(lap{took: time.Second}))
	require.Equal(t, []float64{1. / maxBatch / 4}, s.samples, "operations of all senders count")
}

func TestTimesOfRanksAreMeansOfTheirOwn(t *testing.T) {
	s := newSeries(&harness{world: nil}, benchmark{unit: micros()}, task{})
	s.samples, s.ops, s.ranks = []float64{1}, 10, []float64{1, 2, 6}
	var r result
	s.rankTimes(&r, func(seconds float64) float64 { return seconds })
	require.InDelta(t, 0.3, r.Average, 1e-9)
	require.InDelta(t, 0.1, r.Fastest, 1e-9)
	require.InDelta(t, 0.6, r.Slowest, 1e-9)
}

func TestTailsOfRatesRunTheOtherWay(t *testing.T) {
	h := newTails()
	for i := range int64(100) {
		require.NoError(t, h.RecordValue((i+1)*1000))
	}
	lat := tailsOf(h, micros(), 8)
	require.InDelta(t, 50, lat.P50, 0.5)
	require.InDelta(t, 99, lat.P99, 1)
	require.InDelta(t, 100, lat.Max, 1)
	bw := tailsOf(h, megabytes(), 1000)
	require.InDelta(t, 1000, bw.Max, 1, "the shortest time is the highest rate")
	require.Greater(t, bw.P99, bw.P50)
	require.Nil(t, tailsOf(newTails(), micros(), 8))
}

func TestBenchstatReadsItsLines(t *testing.T) {
	line := regexp.MustCompile(`^Benchmark([A-Z][A-Za-z0-9]*)(/\S+)*-\d+ \d+ [0-9.e+-]+ (ns/op|MB/s|M/sec)$`)
	out, err := bench(t, 2, []string{"put_latency", "put_bw", "conveyor_rate_8_one", "-benchstat", "-size", "8,64"})
	require.NoError(t, err)
	seen := map[string]int{}
	for l := range strings.Lines(out) {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		require.NotNil(t, m, l)
		seen[m[1]+m[3]]++
	}
	require.NotZero(t, seen["PutLatencyns/op"])
	require.NotZero(t, seen["PutBwMB/s"])
	require.NotZero(t, seen["ConveyorRate8OneM/sec"])
	r := result{Benchmark: "put_latency", Provider: "shm", Ranks: 2, Size: 8, Unit: "us", Operations: 80}
	require.Regexp(t, `^BenchmarkPutLatency/shm/ranks=2/size=8-\d+ 10 1500 ns/op$`, r.benchstat(1.5))
}

func TestHiddenShareIsBetweenNoneAndAll(t *testing.T) {
	require.InDelta(t, 0, hidden(30, 10, 10), 1e-9)
	require.InDelta(t, 50, hidden(15, 10, 10), 1e-9)
	require.InDelta(t, 100, hidden(9, 10, 10), 1e-9)
}

func TestRotationGivesBuffersInTurn(t *testing.T) {
	r, err := (&harness{knobs: knobs{buffers: 3}}).rotation(65)
	require.NoError(t, err)
	require.Equal(t, []int{0, 128, 256, 0}, []int{r.next(), r.next(), r.next(), r.next()})
	r, err = (&harness{knobs: knobs{buffers: 1}}).rotation(65)
	require.NoError(t, err)
	require.Equal(t, []int{0, 0, 65}, []int{r.next(), r.next(), r.all})
	_, err = (&harness{knobs: knobs{buffers: 64}}).rotation(maxSize)
	require.ErrorIs(t, err, errSkip)
}

func TestProportionalReadsTheKernelsText(t *testing.T) {
	bytes, err := proportional([]byte("Rss:  10 kB\nPss:                1234 kB\nPss_Dirty: 5 kB\n"))
	require.NoError(t, err)
	require.InDelta(t, 1234*1024, bytes, 0)
	_, err = proportional([]byte("Rss: 10 kB\n"))
	require.Error(t, err)
}

// TestBenchmarksRunWithColdCachesAndInLockstep: both options change each kind of task.
func TestBenchmarksRunWithColdCachesAndInLockstep(t *testing.T) {
	for _, w := range ways {
		args := "put_latency get_latency put_bw coll_allreduce_slices coll_broadcast_arena -json -size 100,5000 -buffers 8 -lockstep"
		out, err := bench(t, 2, strings.Fields(args), w.opts...)
		require.NoError(t, err)
		require.Equal(t, 10, strings.Count(out, "\n"))
	}
}
