//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher"
)

// readStats returns the statistics among reports by rank.
func readStats(reports []launcher.Report) (stats []bootstrap.RankStats, bad int) {
	for _, r := range reports {
		if r.Name != bootstrap.StatsReport {
			continue
		}
		var s bootstrap.RankStats
		if json.Unmarshal(r.Payload, &s) != nil {
			bad++
			continue
		}
		s.Rank = r.Rank
		stats = append(stats, s)
	}
	slices.SortStableFunc(stats, func(a, b bootstrap.RankStats) int { return a.Rank - b.Rank })
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
	fmt.Fprintln(table, "rank\tpeer\tprovider\tops\tbytes\tstaged\tsends\tstalls\tretries\t")
	for _, s := range stats {
		if len(s.Peers) == 0 {
			fmt.Fprintf(table, "%d\t-\t-\t0\t0\t0\t0\t0\t0\t\n", s.Rank)
		}
		for _, p := range s.Peers {
			fmt.Fprintf(table, "%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
				s.Rank, p.Peer, p.Provider, p.Ops, p.Bytes, p.Staged, p.Sends, p.Stalls, p.Retries)
		}
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
	for _, s := range stats {
		if s.Quarantined > 0 {
			fmt.Fprintf(w, "rank %d: %d bytes of the heap quarantined: other ranks may still write there\n", s.Rank, s.Quarantined)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Notes)) {
			fmt.Fprintf(w, "rank %d: %s: %d\n", s.Rank, name, s.Notes[name])
		}
	}
}
