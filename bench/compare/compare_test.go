//go:build linux

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIntervalCoversTheMedianByOrderStatistics(t *testing.T) {
	// Of n samples the k-th and the k-th last, tables of the sign test: n, k.
	for n, k := range map[int]int{6: 1, 8: 1, 9: 2, 12: 3, 15: 4, 20: 6, 25: 8} {
		var s []float64
		for i := n; i > 0; i-- {
			s = append(s, float64(i))
		}
		require.Equal(t, interval{float64(k), float64(n+1) / 2, float64(n + 1 - k)}, spread(s), "%d samples", n)
	}
}

func TestCellIsSlowerWhereIntervalsAreApart(t *testing.T) {
	put := cell{"put", "shm", 8}
	run := func(factor float64) []cell {
		m := newMeasurement()
		for i := range 12 {
			noise := 1 + float64(i%5)/50
			m.add(map[cell]float64{put: 1}, map[cell]float64{put: noise}, map[cell]float64{put: noise * factor})
		}
		return m.print(io.Discard)
	}
	require.Empty(t, run(1))
	require.Empty(t, run(0.5))
	require.Equal(t, []cell{put}, run(1.2))
}

func TestBenchmarkThatOneVersionLacksIsNoCell(t *testing.T) {
	m := newMeasurement()
	m.add(map[cell]float64{{"new", "shm", 8}: 1}, map[cell]float64{{"new", "shm", 8}: 1}, nil)
	require.Empty(t, m.cells)
}

func TestResultsAreReadWithoutFloorsAndCostMoreAsTheyGetWorse(t *testing.T) {
	results, err := read(strings.NewReader(`
{"benchmark":"put_latency","provider":"shm","size":8,"unit":"us","min":1,"median":2,"p99":3}
{"benchmark":"put_latency_floor","provider":"shm","size":8,"unit":"us","min":1,"median":2,"p99":3}
{"benchmark":"bw","provider":"shm","size":8,"unit":"MB/s","min":1,"median":4,"p99":3}`))
	require.NoError(t, err)
	require.Equal(t, []result{{"put_latency", 8, "us", 2}, {"bw", 8, "MB/s", 4}}, results)
	require.Equal(t, 2.0, results[0].cost())
	require.Equal(t, 0.25, results[1].cost())
	_, err = read(strings.NewReader("grun: died"))
	require.Error(t, err)
}

func TestFlagsAndVersionsComeInAnyOrder(t *testing.T) {
	o, err := parse([]string{"-ab", "HEAD~1", "HEAD", "-size", "8", "-bench", "a,b"})
	require.NoError(t, err)
	require.Equal(t, []string{"HEAD~1", "HEAD", "8"}, []string{o.old, o.new, o.sizes})
	require.Equal(t, []string{"a", "b"}, o.benchmarks)
	for _, bad := range [][]string{{"-ab", "HEAD"}, {"a", "b"}, {"-ab", "a", "b", "-rounds", "5"}, {"-ab", "a", "b", "-runs", "0"}} {
		_, err := parse(bad)
		require.Error(t, err, bad)
	}
}
