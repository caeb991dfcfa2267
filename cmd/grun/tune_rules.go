package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/gopgas/gopgas/internal/tuned"
)

// clearlyLess: a built-in choice stays unless another algorithm takes less than this
// part of its time, and less than it ever took. Algorithms that are closer change
// places from run to run.
const clearlyLess = 0.93

// A tuneCase is a call and size that all candidates were measured for.
type tuneCase struct {
	collective, path string
	members, bytes   int
}

// rulesOf turns samples into rules.
func rulesOf(samples []sample) []tuned.Rule {
	byCase := map[tuneCase][]sample{}
	var order []tuneCase
	for _, s := range samples {
		c := tuneCase{s.Collective, s.Path, s.Members, s.Bytes}
		if byCase[c] == nil {
			order = append(order, c)
		}
		byCase[c] = append(byCase[c], s)
	}
	var rules []tuned.Rule
	last := 0 // bytes of the last rule's measurement
	for _, c := range order {
		r := bestOf(byCase[c])
		if k := len(rules) - 1; k >= 0 && sameSubject(&rules[k], &r) {
			if rules[k].Algorithm == r.Algorithm {
				rules[k], last = r, c.bytes
				continue
			}
			rules[k].UpTo = between(last, c.bytes)
		}
		rules, last = append(rules, r), c.bytes
	}
	return rules
}

// bestOf chooses among the samples of one case.
func bestOf(samples []sample) tuned.Rule {
	best := slices.MinFunc(samples, func(a, b sample) int {
		return int(math.Copysign(1, a.Micros-b.Micros))
	})
	r := tuned.Rule{Collective: best.Collective, Path: best.Path, Members: best.Members, Algorithm: best.Algorithm, Micros: best.Micros}
	for _, s := range samples {
		switch {
		case !s.Chosen || s.Algorithm == best.Algorithm:
		case best.Micros > clearlyLess*s.Micros || best.Micros > s.Least:
			r.Algorithm, r.Micros = s.Algorithm, s.Micros
		default:
			r.Instead, r.InsteadMicros = s.Algorithm, s.Micros
		}
	}
	return r
}

func sameSubject(a, b *tuned.Rule) bool {
	return a.Collective == b.Collective && a.Path == b.Path && a.Members == b.Members
}

// between returns the size at which the choice of a smaller size a changes to that of
// a larger size b.
func between(a, b int) int {
	return max(a, min(int(math.Sqrt(float64(a)*float64(b))), b-1))
}

// microsText writes three digits, and more only where they are whole.
func microsText(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// printRules prints the wanted rules as a table.
func printRules(w io.Writer, rules []tuned.Rule, wanted func(tuned.Rule) bool) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "collective\tpath\tranks\tup to\tby\tus\tin place of\tus")
	found := 0
	for _, r := range rules {
		if !wanted(r) {
			continue
		}
		found++
		size, instead := "any size", "\t"
		if r.UpTo > 0 {
			size = bytesText(uint64(r.UpTo))
		}
		if r.Instead != "" {
			instead = r.Instead + "\t" + microsText(r.InsteadMicros)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.Collective, r.Path, r.Members, size, r.Algorithm, microsText(r.Micros), instead)
	}
	if found == 0 {
		fmt.Fprintln(table, "nothing")
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
}
