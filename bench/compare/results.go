//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"
	"time"
)

// A page of results has the figures of a run between marks, each kind behind a mark of its
// own. All other text of the page is the author's, such as the causes of rows.
const (
	countsMark = "<!-- counts -->" // when and where, and how many rows are ahead
	behindMark = "<!-- behind -->" // rows that are behind by clearly or more
	rowsMark   = "<!-- rows -->"   // all of them
	endMark    = "<!-- end -->"
)

// clearly is the ratio from which a page lists a row as behind.
const clearly = 1.1

// writeResults replaces the figures of the page at path. on is the state of the run.
func writeResults(path, on string, lines []line) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w; name a page with marks by -results", err)
	}
	printState := func(out io.Writer, lines []line) {
		fmt.Fprintf(out, "The run ended on %s.\n\n", on)
		printCounts(out, lines)
	}
	for _, part := range []struct {
		mark  string
		write func(io.Writer, []line)
	}{{countsMark, printState}, {behindMark, printBehind}, {rowsMark, printAll}} {
		var text bytes.Buffer
		part.write(&text, lines)
		if page, err = renew(page, part.mark, text.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, page, 0o644) //nolint:gosec // a page for all to read
}

// renew returns page with text between a mark and the next end.
func renew(page []byte, mark string, text []byte) ([]byte, error) {
	before, rest, found := bytes.Cut(page, []byte(mark))
	_, after, ended := bytes.Cut(rest, []byte(endMark))
	if !found || !ended {
		return nil, fmt.Errorf("no %s with %s behind it", mark, endMark)
	}
	return bytes.Join([][]byte{before, []byte(mark), []byte("\n\n"), text, []byte("\n"), []byte(endMark), after}, nil), nil
}

// state returns the day, and what this machine is.
func state() string {
	return fmt.Sprintf("%s: %s, %d cores, %s", time.Now().UTC().Format("2 January 2006"), goruntime.Version(), goruntime.NumCPU(), processor())
}

// printCounts prints how many rows of each kind are ahead of the best peer, and behind it.
func printCounts(out io.Writer, lines []line) {
	type kind struct {
		provider string
		ranks    int
	}
	var order []kind
	ahead, behind := map[kind]int{}, map[kind]int{}
	for _, l := range lines {
		k := kind{l.Provider, l.Ranks}
		if ahead[k]+behind[k] == 0 && l.Ratio.median() > 0 {
			order = append(order, k)
		}
		switch m := l.Ratio.median(); {
		case m > 1:
			behind[k]++
		case m > 0:
			ahead[k]++
		}
	}
	fmt.Fprintln(out, "| provider | ranks | rows with a ratio of at most 1 | above 1 |\n|---|---|---|---|")
	for _, k := range order {
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", k.provider, k.ranks, ahead[k], behind[k])
	}
}

// printBehind prints the rows in which gopgas is clearly behind the best peer.
func printBehind(out io.Writer, lines []line) {
	fmt.Fprintln(out, "| provider | ranks | how | benchmark | size | ratio | best peer |\n|---|---|---|---|---|---|---|")
	for _, l := range lines {
		if l.Ratio.median() >= clearly {
			fmt.Fprintf(out, "| %s | %d | %v | %s | %d | %v | %s |\n", l.Provider, l.Ranks, l.work, l.benchmark, l.size, l.Ratio, l.Best)
		}
	}
}

// printAll prints all rows as text.
func printAll(out io.Writer, lines []line) {
	fmt.Fprintln(out, "```text")
	printLines(out, lines)
	fmt.Fprintln(out, "```")
}

// processor returns the name of the machine's processor.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // without it the name is unknown
	for line := range strings.Lines(string(info)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown processor"
}
