//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/gopgas/gopgas/launcher"
	"github.com/stretchr/testify/require"
)

func TestStatisticsAreATableByRankAndPeer(t *testing.T) {
	var out strings.Builder
	printStats(&out, []launcher.Report{
		{Rank: 1, Name: "stats", Payload: []byte(`{"rank":1,"peers":[{"peer":0,"provider":"tcp","ops":7,"bytes":1024,"staged":512,"sends":3,"stalls":1,"retries":2}]}`)},
		{Rank: 0, Name: "other", Payload: []byte(`{}`)},
		{Rank: 0, Name: "stats", Payload: []byte(`{"peers":[],"quarantined":8192,"notes":{"claimed files":12}}`)},
		{Rank: 2, Name: "stats", Payload: []byte(`nonsense`)},
	})
	require.Equal(t, strings.Join([]string{
		"grun: 1 ranks reported statistics that cannot be read",
		"  rank  peer  provider  ops  bytes  staged  sends  stalls  retries",
		"     0     -         -    0      0       0      0       0        0",
		"     1     0       tcp    7   1024     512      3       1        2",
		"rank 0: 8192 bytes of the heap quarantined: other ranks may still write there",
		"rank 0: claimed files: 12",
		"",
	}, "\n"), out.String())
}

func TestMissingStatisticsAreReported(t *testing.T) {
	var out strings.Builder
	printStats(&out, nil)
	require.Contains(t, out.String(), "no rank reported")
}
