package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/loggp"
)

// someConstants writes a file of constants.
func someConstants(t *testing.T) string {
	link := loggp.Link{Latency: 500, Send: 100, Receive: 50, Gap: 100, PerByte: 0.1, SendPerByte: 0.05, ReceivePerByte: 0.04}
	path := filepath.Join(t.TempDir(), "constants.json")
	c := &constants{Within: link, Among: link, CombinePerByte: 0.01, PerCall: 200}
	require.NoError(t, c.write(path))
	return path
}

func TestPageAndTableShowAllCollectives(t *testing.T) {
	page, ranks, messages := filepath.Join(t.TempDir(), "sim.html"), "2,200,5000", "10000"
	o, err := parse([]string{"-constants", someConstants(t), "-ranks", ranks, "-sizes", "8,64K", "-messages", messages, "-page", page})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, o.run(context.Background(), &out, io.Discard))
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, name := range loggp.Collectives() {
		require.Contains(t, out.String(), "\n"+name+" ")
		require.Contains(t, string(html), "<h2>"+name+"</h2>")
	}
	require.Contains(t, string(html), "<svg")
	require.NotContains(t, string(html), "http-equiv")
	require.NotContains(t, string(html), "<script")
	require.Contains(t, out.String(), "too large to replay")
}

// TestOnlyLogarithmicAlgorithmsAreReplayedForManyRanks: of the algorithms, a rank's messages and
// memory decide.
func TestOnlyLogarithmicAlgorithmsAreReplayedForManyRanks(t *testing.T) {
	c, err := readConstants(someConstants(t))
	require.NoError(t, err)
	o := &options{most: 1 << 40}
	many := c.machine(100_000, 8)
	for algorithm, want := range map[string]bool{"binomial": true, "linear": false} {
		require.Equal(t, want, o.small(many, "broadcast", algorithm), algorithm)
	}
	require.True(t, o.small(many, "all-reduce", "recursive-doubling"))
	require.False(t, o.small(many, "all-gather", "recursive-doubling"), "the memory of a rank grows with the ranks")
	require.True(t, o.small(c.machine(4096, 8), "all-gather", "recursive-doubling"))
	o.most = 1000
	require.False(t, o.small(c.machine(4096, 8), "broadcast", "binomial"), "too many messages in all")
}

func TestStartGrowsWithTheRanks(t *testing.T) {
	c, err := readConstants(someConstants(t))
	require.NoError(t, err)
	s := c.starts([]int{64, 4096})
	require.Equal(t, 64*s[0].Messages, s[1].Messages)
	require.Greater(t, s[1].Time, s[0].Time)
	require.Equal(t, s[0].Rounds+6, s[1].Rounds)
}

func TestFitTakesTheConstantsFromTimes(t *testing.T) {
	var l loggp.Link
	times, err := readTimes([]byte(`{"benchmark":"channel_send","size":8,"median":0.1}
{"benchmark":"channel_send","size":16384,"median":1.7376}
{"benchmark":"channel_receive","size":8,"median":0.05}
{"benchmark":"channel_receive","size":16384,"median":0.05}
{"benchmark":"channel_stream","size":8,"median":0.2}
{"benchmark":"channel_latency","size":8,"median":1}
{"benchmark":"channel_latency","size":16384,"median":4.2752}`))
	require.NoError(t, err)
	fit(&l, times)
	require.InDelta(t, 850, l.Latency, 1e-6)
	require.InDelta(t, 200, l.Gap, 1e-6)
	require.InDelta(t, 0.1, l.SendPerByte, 1e-6)
	require.Zero(t, l.ReceivePerByte)
	require.InDelta(t, 0.1, l.PerByte, 1e-6)
}

func TestWrongFlagsSayWhatToDo(t *testing.T) {
	for _, args := range [][]string{{"-ranks", "0"}, {"-ranks", "x"}, {"-sizes", "8,"}, {"-per-host", "0"}, {"-collectives", "none"}, {"something"}} {
		_, err := parse(args)
		require.Error(t, err, strings.Join(args, " "))
		require.Regexp(t, "want|-h shows", err.Error())
	}
	_, err := readConstants(filepath.Join(t.TempDir(), "absent"))
	require.ErrorContains(t, err, "-save")
	path := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(path, []byte(`{"witin":{}}`), 0o600))
	_, err = readConstants(path)
	require.ErrorContains(t, err, "-save")
}
