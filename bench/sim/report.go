package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printGroups prints the choices of all groups.
func printGroups(out io.Writer, groups []group) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\ncollective\tranks\tbytes\tbest\ttime\tby the rules\ttime\tratio")
	for i := range groups {
		g := &groups[i]
		for k := range g.Steps {
			s := &g.Steps[k]
			fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%v\t%s\t%s\t%s\n", g.Collective, g.Ranks, s.Size, s.Best, s.BestIn, s.Rule, s.RuleTime(), s.Ratio())
		}
		if len(g.Left) > 0 {
			fmt.Fprintf(table, "%s\t%d\t\ttoo large to replay: %s\n", g.Collective, g.Ranks, strings.Join(g.Left, ", "))
		}
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
}

// RuleTime returns the time of the rules' algorithm.
func (s step) RuleTime() string {
	if s.RuleIn == 0 && s.BestIn > 0 {
		return "-"
	}
	return s.RuleIn.String()
}

// Ratio returns the time of the rules' algorithm as a multiple of the best one's.
func (s step) Ratio() string {
	switch {
	case s.BestIn == 0:
		return "1.00"
	case s.RuleIn == 0:
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(s.RuleIn)/float64(s.BestIn))
}

// Behind reports whether the rules' algorithm takes more than 1.2 of the best time.
func (s step) Behind() bool { return float64(s.RuleIn) > 1.2*float64(s.BestIn) }
