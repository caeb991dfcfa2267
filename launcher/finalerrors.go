package launcher

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// finalErrors takes the errors that end ranks. The launcher prints each new one at once.
// At the end it lists the ranks that had the same one.
type finalErrors struct {
	r, w  *os.File
	size  int
	kinds []*sameError
}

// A sameError is an error that some ranks had, each about itself.
type sameError struct {
	text  namedRanks
	first int   // first rank that had it
	also  []int // other ranks that had it
}

// newFinalErrors makes the pipe.
func newFinalErrors(size int) (*finalErrors, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for errors of the ranks: %w", err)
	}
	return &finalErrors{r: r, w: w, size: size}, nil
}

// path returns the path at which ranks open the pipe.
func (f *finalErrors) path() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.w.Fd())
}

// read posts the errors that ranks send, and a last event once no rank can send one any
// more.
func (f *finalErrors) read(post func(event)) {
	lines := bufio.NewReaderSize(f.r, bootstrap.MaxFinalError)
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			break
		}
		if e, err := bootstrap.ParseFinalError(line, f.size); err == nil {
			post(event{kind: finalError, rank: e.Rank, text: e.Text})
		}
	}
	post(event{kind: noMoreErrors})
}

// end has read return once it has read everything. The caller calls it after the
// ranks have ended.
func (f *finalErrors) end() {
	f.w.Close()
	f.r.SetReadDeadline(time.Now().Add(drainWait)) //nolint:errcheck // pipes have deadlines
}

func (f *finalErrors) close() {
	f.w.Close()
	f.r.Close()
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
			fmt.Fprintf(w, "grun: %s: the same error as rank %d\n", Ranks(k.also), k.first)
		}
	}
}
