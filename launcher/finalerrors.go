//go:build linux

package launcher

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// finalErrors takes the errors that end ranks, as the agents read them. The launcher prints
// each new one at once. At the end it lists the ranks that had the same one.
type finalErrors struct {
	kinds []*sameError
}

// A sameError is an error that some ranks had, each about itself.
type sameError struct {
	text  namedRanks
	first int   // first rank that had it
	also  []int // other ranks that had it
}

// add records a rank's error, and reports whether it is a new one.
func (f *finalErrors) add(rank int, text string) bool {
	named := namesIn(text)
	for _, k := range f.kinds {
		if k.text.like(k.first, named, rank) {
			k.also = append(k.also, rank)
			return false
		}
	}
	f.kinds = append(f.kinds, &sameError{text: named, first: rank})
	return true
}

// namedRanks splits a text into the ranks that it names and the rest.
type namedRanks struct {
	text  string
	ranks []int
}

// namesIn returns a text without the numbers of ranks in it, and these numbers. So errors that differ
// only in them count as one.
func namesIn(text string) (n namedRanks) {
	n.text = regexp.MustCompile(`\brank \d+\b`).ReplaceAllStringFunc(text, func(name string) string {
		rank, _ := strconv.Atoi(strings.TrimPrefix(name, "rank ")) // it is digits
		n.ranks = append(n.ranks, rank)
		return "rank N"
	})
	return n
}

// like reports whether rank and another rank have the same error, even if each names itself.
func (n namedRanks) like(rank int, m namedRanks, other int) bool {
	return n.text == m.text && slices.EqualFunc(n.ranks, m.ranks, func(a, b int) bool {
		return a == b || a == rank && b == other
	})
}

// summarize lists the ranks that had the same error as an earlier rank.
func (f *finalErrors) summarize(w io.Writer) {
	for _, k := range f.kinds {
		if len(k.also) > 0 {
			fmt.Fprintf(w, "grun: %s: the same error as rank %d\n", bootstrap.Ranks(k.also), k.first)
		}
	}
}
