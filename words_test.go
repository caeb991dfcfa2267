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

// requests lists words for which messages have request and response.
var requests = strings.Fields("ask asks asked asker askers asking answer answers answered answering unanswered")

// plainBelow lists, by folder, words that comments do not use there either.
var plainBelow = map[string][]string{"rpipe/": requests}

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
		banned := slices.Concat(retired, requests)
		for _, name := range all {
			for _, word := range words(name) {
				if slices.Contains(banned, word) {
					t.Errorf("%s: %s has the retired word %q", file, name, word)
				}
			}
		}
	}
}

// TestCommentsHaveNoRetiredWords looks at the comments below the folders whose comments are swept.
func TestCommentsHaveNoRetiredWords(t *testing.T) {
	checked := 0
	for _, file := range files(t, ".go") {
		banned := below(plainBelow, file)
		if banned == nil {
			continue
		}
		for _, group := range parsed(t, file).Comments {
			for _, w := range words(group.Text()) {
				checked++
				if slices.Contains(banned, w) {
					t.Errorf("%s: a comment has the retired word %q", file, w)
				}
			}
		}
	}
	require.Greater(t, checked, 3000, "few words: does words find them?")
}

// TestDeclarationsHaveComments looks at functions, methods and types below the folders whose comments
// are swept, but not at tests.
func TestDeclarationsHaveComments(t *testing.T) {
	checked := 0
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || below(plainBelow, file) == nil {
			continue
		}
		for _, decl := range parsed(t, file).Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				checked++
				if d.Doc == nil {
					t.Errorf("%s: %s has no comment", file, d.Name.Name)
				}
			case *ast.GenDecl:
				if d.Tok == token.TYPE && d.Doc == nil {
					t.Errorf("%s: a type has no comment", file)
				}
			}
		}
	}
	require.Greater(t, checked, 500)
}

// below returns the words that a table has for the folders of a file.
func below(table map[string][]string, file string) (found []string) {
	for folder, list := range table {
		if strings.HasPrefix(file, folder) {
			found = append(found, list...)
		}
	}
	return found
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

// mostWords is the limit for a sentence, or a part of one before a colon or semicolon. It catches riddles:
// CONTRIBUTING.md asks for 20.
const mostWords = 30

// TestSentencesAreShort looks at comments and at documents, apart from decisions and the changelog.
func TestSentencesAreShort(t *testing.T) {
	checked := 0
	check := func(file, paragraph string) {
		checked++
		for _, part := range partEnd.Split(markup.ReplaceAllString(paragraph, "$1"), -1) {
			if n := len(word.FindAllString(part, -1)); n > mostWords {
				t.Errorf("%s: %d words, want at most %d: %s", file, n, mostWords, part)
			}
		}
	}
	for _, file := range files(t, ".go") {
		for _, group := range parsed(t, file).Comments {
			for _, paragraph := range paragraphs(group.Text()) {
				check(file, paragraph)
			}
		}
	}
	for _, file := range files(t, ".md") {
		if file == "CHANGELOG.md" || strings.HasPrefix(file, "docs/adr/") {
			continue
		}
		for _, paragraph := range paragraphs(plain(read(t, file))) {
			check(file, paragraph)
		}
	}
	require.Greater(t, checked, 3000, "few sentences: does paragraphs find them?")
}

func TestSentencesOfDocumentsLeaveOutTablesAndCode(t *testing.T) {
	text := "# Heading\n\nOne.\n- Two\n  goes on.\n1. Three.\n\n    code\n| a | table |\n```go\ncode()\n```\nFour."
	require.Equal(t, []string{"One.", "Two goes on.", "Three.", "Four."}, paragraphs(plain(text)))
	require.Equal(t, []string{"A b", "c", "d e."}, partEnd.Split("A b: c; d e.", -1))
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
	for _, text := range paragraphs(group.Text()) {
		for cut := sentenceEnd.FindStringIndex(text); cut != nil; cut = sentenceEnd.FindStringIndex(text) {
			out, text = append(out, text[:cut[0]+1]), text[cut[1]-1:]
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// paragraphs returns the paragraphs of a text, each in one line, without headings and indented lines.
func paragraphs(text string) (out []string) {
	var prose []string
	for line := range strings.SplitSeq(text+"\n", "\n") {
		switch {
		case line == "" && prose != nil:
			out, prose = append(out, strings.Join(prose, " ")), nil
		case line == "" || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "# "):
		default:
			prose = append(prose, line)
		}
	}
	return out
}

// plain returns the prose of a document. Each item of a list becomes a paragraph.
func plain(markdown string) string {
	var b strings.Builder
	code := false
	for line := range strings.SplitSeq(markdown, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		code = code != fence
		switch item := listItem.FindString(line); {
		case fence || code || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#"):
			b.WriteString("\n")
		case item != "":
			b.WriteString("\n" + line[len(item):] + "\n")
		default:
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String()
}

var (
	sentenceEnd = regexp.MustCompile("[.!?] +[A-Z`\"(]")
	partEnd     = regexp.MustCompile(`[.!?;:]\)? +`)
	word        = regexp.MustCompile(`[^ ]*[A-Za-z0-9][^ ]*`)
	markup      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	listItem    = regexp.MustCompile(`^ *(?:[-*]|\d+\.) `)
)
