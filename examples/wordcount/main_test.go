package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/examples/internal/corpus"
	"github.com/gopgas/gopgas/runtime"
)

// plant makes a tree with everything that a folder may hold.
func plant(t *testing.T) string {
	root := t.TempDir()
	files := map[string]string{
		"empty":                 "",
		"plain.txt":             "The quick brown fox jumps over the lazy dog.\nThe end\n",
		"no newline at the end": "the end",
		"digits":                "a1b2c3 -- don't__snake_case x\r\ny\tz\n",
		"utf8":                  "naïve Ωmega [brackets] @at `tick` {brace} Zürich\n",
		"long":                  strings.Repeat("LongWord", 10_000) + " " + strings.Repeat("longword", 10_000) + "x",
		"wide":                  strings.Repeat("many words ", 30_000),
		"sub/deep/er/file.go":   "package main // the main package\nfunc main() {}\n",
		"sub/.hidden":           "hidden the",
		"new\nline":             "odd name",
		"nul.bin":               "binary the\x00the binary",
		"sub/.git/config":       "the git config",
		"sub/.cache/a/b":        "hidden from below",
	}
	for i := range 200 {
		files[fmt.Sprintf("small/%03d.txt", i)] = fmt.Sprintf("file%d the small word%c", i, 'a'+i%26)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink("nowhere", filepath.Join(root, "broken")))
	require.NoError(t, os.Symlink("plain.txt", filepath.Join(root, "link")))
	require.NoError(t, os.Symlink(".", filepath.Join(root, "sub/loop")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	return root
}

// pipeline counts with the shell's tools and prints `count word` lines in this
// program's order. only are conditions for find.
func pipeline(t *testing.T, root string, only ...string) string {
	t.Helper()
	find := append([]string{root, "-type", "f"}, only...)
	find = append(find, "-exec", "sh", "-c", `for f; do tr -cs A-Za-z '\n' < "$f"; echo; done`, "sh", "{}", "+")
	words, err := exec.Command("find", find...).Output()
	require.NoError(t, err)
	count := exec.Command("sh", "-c", `tr A-Z a-z | grep . | sort | uniq -c | sort -k1,1nr -k2 | sed 's/^ *//'`)
	count.Env = append(os.Environ(), "LC_ALL=C")
	count.Stdin = bytes.NewReader(words)
	lines, err := count.Output()
	require.NoError(t, err)
	return string(lines)
}

// count runs the program on n ranks and returns its output.
func count(n int, provider string, o options) (out, log string, err error) {
	var outBuf, logBuf lockedBuffer
	o.Out, o.Log = &outBuf, &logBuf
	err = local(n, provider, o.run)
	return outBuf.String(), logBuf.String(), err
}

const every = 1 << 30

// requireLines names the first line that differs; words may be long.
func requireLines(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		require.True(t, w[i] == g[i], "line %d: %d bytes %.60q, want %d bytes %.60q", i, len(g[i]), g[i], len(w[i]), w[i])
	}
	require.Len(t, g, len(w))
}

func TestCountsAreThoseOfTheShell(t *testing.T) {
	root := plant(t)
	text := pipeline(t, root, "-not", "-path", filepath.Join(root, "*/.*/*"), "-not", "-name", "*.bin")
	all := pipeline(t, root)
	require.True(t, text != all)
	everywhere(t, func(t *testing.T, n int, provider string) {
		out, log, err := count(n, provider, options{corpus.Options{Program: "wordcount", Dir: root, Top: every, Verify: true}})
		require.NoError(t, err)
		requireLines(t, text, out)
		require.Contains(t, log, fmt.Sprintf("verified: all %d words", strings.Count(text, "\n")))

		out, _, err = count(n, provider, options{corpus.Options{Program: "wordcount", Dir: root, Top: every, All: true}})
		require.NoError(t, err)
		requireLines(t, all, out)

		out, _, err = count(n, provider, options{corpus.Options{Program: "wordcount", Dir: root, Top: 10}})
		require.NoError(t, err)
		requireLines(t, strings.Join(strings.SplitAfter(text, "\n")[:10], ""), out)
	})
}

func TestFoldersWithoutWords(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "numbers"), []byte("1 2 3\n"), 0o644))
	everywhere(t, func(t *testing.T, n int, provider string) {
		out, _, err := count(n, provider, options{corpus.Options{Program: "wordcount", Dir: root, Top: 10, Verify: true}})
		require.NoError(t, err)
		require.Empty(t, out)
	})
}

func TestOneFileAndALinkToAFolder(t *testing.T) {
	root := plant(t)
	out, _, err := count(2, "loop", options{corpus.Options{Program: "wordcount", Dir: filepath.Join(root, "plain.txt"), Top: 1}})
	require.NoError(t, err)
	require.Equal(t, "3 the\n", out)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(root, "sub/deep"), link))
	out, _, err = count(2, "loop", options{corpus.Options{Program: "wordcount", Dir: link, Top: 1}})
	require.NoError(t, err)
	require.Equal(t, "3 main\n", out)
}

func TestMissingFolderReturnsAnError(t *testing.T) {
	_, _, err := count(3, "loop", options{corpus.Options{Program: "wordcount", Dir: filepath.Join(t.TempDir(), "missing"), Top: 1}})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestReaderSkipsAFileThatDisappears lists a file and removes it before it is counted,
// as happens in a folder that is in use.
func TestReaderSkipsAFileThatDisappears(t *testing.T) {
	o := options{corpus.Options{Program: "wordcount", Log: &lockedBuffer{}}}
	words := corpus.Counts{}
	missing := filepath.Join(t.TempDir(), "missing")
	require.NoError(t, o.Folder().Count(context.Background(), words, []string{missing}, true))
	require.Empty(t, words)
	require.Contains(t, fmt.Sprint(o.Log), "left out")
}

func TestRanksThatListDifferentFilesGetAnError(t *testing.T) {
	err := local(3, "loop", func(ctx context.Context, job *runtime.Job) error {
		files := []string{"a", "b"}
		if job.World().Rank() == 2 {
			files = []string{"a", "c"}
		}
		_, err := newClaims(ctx, job.World(), files)
		return err
	})
	require.ErrorContains(t, err, "rank 2 lists other files than rank 0")
}

// TestVerifyFindsEveryDifference damages the table in every way.
func TestVerifyFindsEveryDifference(t *testing.T) {
	right := corpus.Counts{}
	for _, w := range []string{"one", "two", "two", "three"} {
		right.Add([]byte(w))
	}
	for name, table := range map[string]map[string]uint64{
		"count": {"one": 1, "two": 1, "three": 1},
		"lost":  {"one": 1, "two": 2},
		"extra": {"one": 1, "two": 2, "three": 1, "four": 1},
	} {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			o := options{corpus.Options{Program: "wordcount", Log: &log}}
			require.ErrorContains(t, local(1, "loop", func(ctx context.Context, job *runtime.Job) error {
				damaged, err := filled(ctx, job.World(), nil, []map[string]uint64{table})
				if err != nil {
					return err
				}
				want := corpus.Counts{}
				for w, n := range right {
					want[w] = n
				}
				return verify(ctx, damaged, o.Folder().Against(want, 1))
			}), "1 words differ from a sequential count of 3 words")
			require.Equal(t, 1, strings.Count(log.String(), "\n"))
		})
	}
}

// TestVerifyFailsWhenFilesChange has the count and its repetition differ.
func TestVerifyFailsWhenFilesChange(t *testing.T) {
	root := plant(t)
	o := options{corpus.Options{Program: "wordcount", Dir: root, Log: &lockedBuffer{}, Out: &lockedBuffer{}, Verify: true}}
	err := local(2, "loop", func(ctx context.Context, job *runtime.Job) error {
		files, err := o.Folder().List(false)
		if err != nil {
			return err
		}
		words, err := o.countClaimed(ctx, job, files)
		if err != nil {
			return err
		}
		table, err := merge(ctx, job.World(), words)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, "plain.txt"), []byte("other words"), 0o644); err != nil {
			return err
		}
		if err := o.report(ctx, job, table, files); err != nil {
			return err
		}
		return table.Free(ctx)
	})
	require.ErrorContains(t, err, "words differ from a sequential count")
}
