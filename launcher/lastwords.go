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

// lastWords prints the errors that end ranks: each that is new at once, and in the
// end which ranks had the same.
type lastWords struct {
	r, w    *os.File
	size    int
	sayings []*saying
}

// A saying is what some ranks said, each of itself.
type saying struct {
	words namedRanks
	first int
	also  []int
}

// newLastWords makes the pipe.
func newLastWords(size int) (*lastWords, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for errors of the ranks: %w", err)
	}
	return &lastWords{r: r, w: w, size: size}, nil
}

// path is where ranks find the pipe.
func (l *lastWords) path() string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), l.w.Fd())
}

// read posts what ranks say, and an event once no rank can say anything any more.
func (l *lastWords) read(post func(event)) {
	lines := bufio.NewReaderSize(l.r, bootstrap.MaxLastWords)
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			break
		}
		if w, err := bootstrap.ParseLastWords(line, l.size); err == nil {
			post(event{kind: spoke, rank: w.Rank, text: w.Text})
		}
	}
	post(event{kind: silenced})
}

// end has read end once it has everything. The ranks have ended.
func (l *lastWords) end() {
	l.w.Close()
	l.r.SetReadDeadline(time.Now().Add(drainWait)) //nolint:errcheck // pipes have deadlines
}

func (l *lastWords) close() {
	l.w.Close()
	l.r.Close()
}

// hear returns whether no rank has said the like.
func (l *lastWords) hear(rank int, text string) bool {
	words := namesIn(text)
	for _, s := range l.sayings {
		if s.words.like(s.first, words, rank) {
			s.also = append(s.also, rank)
			return false
		}
	}
	l.sayings = append(l.sayings, &saying{words: words, first: rank})
	return true
}

// namedRanks is a text apart from the ranks that it names.
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

// like tells whether what rank said is what another said, where each named itself.
func (n namedRanks) like(rank int, m namedRanks, other int) bool {
	return n.text == m.text && slices.EqualFunc(n.ranks, m.ranks, func(a, b int) bool {
		return a == b || a == rank && b == other
	})
}

// summarize says which ranks said the same as another.
func (l *lastWords) summarize(w io.Writer) {
	for _, s := range l.sayings {
		if len(s.also) > 0 {
			fmt.Fprintf(w, "grun: %s: the same error as rank %d\n", Ranks(s.also), s.first)
		}
	}
}
