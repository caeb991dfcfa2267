//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/gopgas/gopgas/internal/tuned"
)

// clearlyLess makes rivals. An algorithm is a rival of the built-in choice if it takes less than
// this part of the choice's time. It must also take less than the choice ever took. Algorithms that
// are closer change places from run to run.
const clearlyLess = 0.93

// A tuneCase is a call and size that all candidates were measured for.
type tuneCase struct {
	collective string
	bytes      int
}

// caseOf returns the samples of each case, and the cases in the order of measurement.
func caseOf(samples []sample) (of map[tuneCase][]sample, order []tuneCase) {
	of = map[tuneCase][]sample{}
	for _, s := range samples {
		c := tuneCase{s.Collective, s.Bytes}
		if of[c] == nil {
			order = append(order, c)
		}
		of[c] = append(of[c], s)
	}
	return of, order
}

// casesOf returns the number of different cases among samples.
func casesOf(samples []sample) int {
	_, order := caseOf(samples)
	return len(order)
}

// rivalsOf lists the algorithms that seem faster than the built-in choice, as readRival
// takes them.
func rivalsOf(samples []sample) (list []string) {
	of, order := caseOf(samples)
	for _, c := range order {
		if name := rivalIn(of[c]); name != "" {
			list = append(list, fmt.Sprintf("%s:%d:%s", c.collective, c.bytes, name))
		}
	}
	return list
}

// rivalIn returns the algorithm that seems faster in one case, "" if there is none.
func rivalIn(samples []sample) string {
	best := slices.MinFunc(samples, func(a, b sample) int { return cmp.Compare(a.Micros, b.Micros) })
	for _, s := range samples {
		if s.Chosen && (best.Micros > clearlyLess*s.Micros || best.Micros > s.Least) {
			return ""
		}
	}
	if best.Chosen {
		return ""
	}
	return best.Algorithm
}

// rulesOf turns the trials that an algorithm passed into rules. A rule holds from one
// measured size to another if the algorithm was faster at all measured sizes from the one
// to the other.
func rulesOf(samples []sample, trials []trial) (rules []tuned.Rule) {
	passed := map[tuneCase]trial{}
	for _, k := range trials {
		if k.Faster {
			passed[tuneCase{k.Collective, k.Bytes}] = k
		}
	}
	_, order := caseOf(samples)
	goesOn := false // the last rule holds for the case before
	for _, c := range order {
		k, ok := passed[c]
		if !ok {
			goesOn = false
			continue
		}
		r := tuned.Rule{Collective: c.collective, From: c.bytes, UpTo: c.bytes, Algorithm: k.Algorithm,
			Micros: k.Micros, Instead: k.Instead, InsteadMicros: k.InsteadMicros}
		if last := len(rules) - 1; goesOn && rules[last].Collective == r.Collective && rules[last].Algorithm == r.Algorithm {
			r.From = rules[last].From
			rules[last] = r
			continue
		}
		rules, goesOn = append(rules, r), true
	}
	return rules
}

// microsText writes three digits, and more only where they are whole.
func microsText(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// printTable prints the rules of all settings.
func printTable(w io.Writer, t *tuned.Table) {
	for _, m := range t.Settings {
		fmt.Fprintf(w, "\n%v:\n", m.Setting)
		printRules(w, m.Rules)
	}
}

// printRules prints the rules of a setting as a table.
func printRules(w io.Writer, rules []tuned.Rule) {
	if len(rules) == 0 {
		fmt.Fprintln(w, "no algorithm is faster than the built-in choice")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "collective\tfrom\tup to\tby\tus\tin place of\tus")
	for _, r := range rules {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Collective, bytesText(uint64(r.From)), bytesText(uint64(r.UpTo)),
			r.Algorithm, microsText(r.Micros), r.Instead, microsText(r.InsteadMicros))
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
}
