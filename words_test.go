package gopgas_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// retired lists private nouns for which the field has words, see docs/glossary.md. Comments
// may use them as plain English.
var retired = strings.Fields(`bay berth carrier course crew crossing farewell guide herald hosting insister knock lane
	letter lingerer loan meeting parcel parting pocket reminder stopper stray tally usurper vigil voyage`)

// bannedSubject matches sentences without a named actor.
var bannedSubject = regexp.MustCompile(`(?i)^(who|whoever|whom|whose|what|whatever|nobody|no one|somebody|someone|anybody|anyone|everybody|everyone|the others|others|the other (one|is|has|was|may|can|must|will|does))\b|\b(is|are) what\b|\btells whether\b`)

// british lists parts of words that American English spells in another way.
var british = strings.Fields(`cancelled cancelling behaviour neighbour colour honour favour signalled signalling labelled modelled
	travelled dialled centre learnt initialis recognis synchronis serialis optimis organis minimis maximis summaris parallelis`)

// TestFilesHaveAmericanSpelling looks at code, comments and documents. The changelog names
// what was renamed.
func TestFilesHaveAmericanSpelling(t *testing.T) {
	for _, file := range append(files(t, ".go"), files(t, ".md")...) {
		if file == "words_test.go" || file == "CHANGELOG.md" {
			continue
		}
		text := strings.ToLower(read(t, file))
		for _, word := range british {
			if strings.Contains(text, word) {
				t.Errorf("%s: spell %q as Americans do", file, word)
			}
		}
	}
}

// TestIdentifiersHaveNoRetiredWords looks at the names that a package declares, and
// at the names of its files.
func TestIdentifiersHaveNoRetiredWords(t *testing.T) {
	for _, file := range files(t, ".go") {
		all := []string{strings.TrimSuffix(filepath.Base(file), ".go")}
		for _, decl := range parsed(t, file).Decls {
			all = append(all, names(decl)...)
		}
		for _, name := range all {
			for _, word := range words(name) {
				if slices.Contains(retired, word) {
					t.Errorf("%s: %s has the retired word %q", file, name, word)
				}
			}
		}
	}
}

// TestCommentsNameTheirActor looks at each sentence of each comment, but not at
// headings, lists and indented text.
func TestCommentsNameTheirActor(t *testing.T) {
	checked := 0
	for _, file := range files(t, ".go") {
		for _, group := range parsed(t, file).Comments {
			for _, sentence := range sentences(group) {
				checked++
				if bannedSubject.MatchString(sentence) {
					t.Errorf("%s: name the actor in %q", file, sentence)
				}
			}
		}
	}
	require.Greater(t, checked, 3000, "few sentences: does sentences find them?")
}

func TestWordsSplitsNames(t *testing.T) {
	for name, want := range map[string][]string{
		"conveyor_lane":      {"conveyor", "lane"},
		"queueBays":          {"queue", "bay"},
		"newHTTPCrew":        {"new", "http", "crew"},
		"Writer.lentLetters": {"writer", "lent", "letter"},
		"explained":          {"explained"},
	} {
		require.Equal(t, want, words(name), name)
	}
}

func parsed(t *testing.T, file string) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return f
}

// words returns the words of a name in lower case, in the singular.
func words(name string) (out []string) {
	name = regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "$1.$2")
	name = regexp.MustCompile(`([A-Z])([A-Z][a-z])`).ReplaceAllString(name, "$1.$2")
	for _, word := range regexp.MustCompile(`[a-z]+`).FindAllString(strings.ToLower(name), -1) {
		if singular := strings.TrimSuffix(word, "s"); slices.Contains(retired, singular) {
			word = singular
		}
		out = append(out, word)
	}
	return out
}

// sentences returns the sentences of a comment's paragraphs.
func sentences(group *ast.CommentGroup) (out []string) {
	var prose []string
	end := func() {
		text := strings.Join(prose, " ")
		for cut := sentenceEnd.FindStringIndex(text); cut != nil; cut = sentenceEnd.FindStringIndex(text) {
			out, text = append(out, text[:cut[0]+1]), text[cut[1]-1:]
		}
		if text != "" {
			out = append(out, text)
		}
		prose = nil
	}
	for line := range strings.SplitSeq(group.Text(), "\n") {
		switch {
		case line == "":
			end()
		case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "# "):
		default:
			prose = append(prose, line)
		}
	}
	end()
	return out
}

var sentenceEnd = regexp.MustCompile("[.!?] +[A-Z`\"(]")
