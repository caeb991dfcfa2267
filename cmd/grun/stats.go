package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/gopgas/gopgas/launcher"
)

// rankStats is what a rank reports under the name "stats".
type rankStats struct {
	Rank     int               `json:"rank"`
	Provider string            `json:"provider"`
	Peers    []peerStats       `json:"peers"`
	Notes    map[string]string `json:"notes"`
}

type peerStats struct {
	Peer    int    `json:"peer"`
	Ops     uint64 `json:"ops"`
	Bytes   uint64 `json:"bytes"`
	Sends   uint64 `json:"sends"`
	Stalls  uint64 `json:"stalls"`
	Retries uint64 `json:"retries"`
}

// readStats returns the statistics among reports by rank.
func readStats(reports []launcher.Report) (stats []rankStats, bad int) {
	for _, r := range reports {
		if r.Name != "stats" {
			continue
		}
		var s rankStats
		if json.Unmarshal(r.Payload, &s) != nil {
			bad++
			continue
		}
		s.Rank = r.Rank
		stats = append(stats, s)
	}
	slices.SortStableFunc(stats, func(a, b rankStats) int { return a.Rank - b.Rank })
	return stats, bad
}

// printStats prints a line for each rank and peer, and the ranks' notes.
func printStats(w io.Writer, reports []launcher.Report) {
	stats, bad := readStats(reports)
	if bad > 0 {
		fmt.Fprintf(w, "grun: %d ranks reported statistics that cannot be read\n", bad)
	}
	if len(stats) == 0 {
		fmt.Fprintln(w, "grun: no rank reported statistics; they come when a job is closed")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "rank\tprovider\tpeer\tops\tbytes\tsends\tstalls\tretries\t")
	for _, s := range stats {
		if len(s.Peers) == 0 {
			fmt.Fprintf(table, "%d\t%s\t-\t0\t0\t0\t0\t0\t\n", s.Rank, s.Provider)
		}
		for _, p := range s.Peers {
			fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
				s.Rank, s.Provider, p.Peer, p.Ops, p.Bytes, p.Sends, p.Stalls, p.Retries)
		}
	}
	table.Flush() //nolint:errcheck // nobody to tell
	for _, s := range stats {
		for _, name := range slices.Sorted(maps.Keys(s.Notes)) {
			fmt.Fprintf(w, "rank %d: %s: %s\n", s.Rank, name, s.Notes[name])
		}
	}
}
