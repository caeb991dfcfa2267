package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/examples/internal/corpus"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// everywhere runs test for each way to move bytes and size of job.
func everywhere(t *testing.T, test func(t *testing.T, n int, opts []runtime.Option)) {
	for name, opts := range map[string][]runtime.Option{
		"mapped": {runtime.WithProvider("loop")},
		"queued": {runtime.WithProvider("loop"), runtime.WithFMAMax(0)},
		"tcp":    {runtime.WithProvider("tcp")},
	} {
		for _, n := range []int{1, 2, 3, 4, 8} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) { test(t, n, opts) })
		}
	}
}

// local runs body on n ranks of this process under a watchdog.
func local(n int, body runtime.Body, opts ...runtime.Option) error {
	return testjob.RunLocal(context.Background(), n, body, opts...)
}

// plant makes a folder and returns the words of its files.
func plant(t *testing.T) (root string, want counts) {
	files := map[string]string{
		"empty":      "",
		"plain":      "The quick brown fox jumps over the lazy dog.\nThe end",
		"long":       strings.Repeat("Long", blockSize) + " " + strings.Repeat("long", blockSize),
		"repeated":   strings.Repeat("again and ", 30_000),
		"sub/binary": "the\x00the", // left out
	}
	for i := range 200 {
		files[fmt.Sprintf("small/%d", i)] = fmt.Sprintf("the word%c x%s", 'a'+i%26, strings.Repeat("y", i))
	}
	root, want = t.TempDir(), counts{}
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		if strings.Contains(text, "\x00") {
			continue
		}
		for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '.' || r == '\n' }) {
			want[strings.ToLower(w)]++
		}
	}
	return root, want
}

// lockedBuffer takes the output of several ranks.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestEveryWordIsAddedUp(t *testing.T) {
	root, want := plant(t)
	words := slices.SortedFunc(maps.Keys(want), func(a, b string) int {
		if want[a] != want[b] {
			return int(want[b]) - int(want[a])
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	for _, w := range words {
		fmt.Fprintln(&text, want[w], w)
	}
	everywhere(t, func(t *testing.T, n int, opts []runtime.Option) {
		var out, log lockedBuffer
		o := options{corpus.Options{Program: "pipes", Dir: root, Top: len(words) + 1, Verify: true, Out: &out, Log: &log}}
		require.NoError(t, local(n, o.run, opts...))
		require.True(t, text.String() == out.String(), "%.2000s", out.String())
		require.Contains(t, log.String(), fmt.Sprintf("verified: all %d words", len(words)))
	})
}

func TestFolderWithoutWordsGivesNoCounts(t *testing.T) {
	var out lockedBuffer
	o := options{corpus.Options{Program: "pipes", Dir: t.TempDir(), Top: 10, Verify: true, Out: &out, Log: &lockedBuffer{}}}
	require.NoError(t, local(3, o.run, runtime.WithProvider("loop")))
	require.Empty(t, out.String())
}

func TestMissingFolderReturnsAnError(t *testing.T) {
	o := options{corpus.Options{Program: "pipes", Dir: filepath.Join(t.TempDir(), "missing"), Log: &lockedBuffer{}}}
	require.ErrorIs(t, local(2, o.run, runtime.WithProvider("loop")), os.ErrNotExist)
}

// TestFailedRankEndsTheOtherRanks: they wait for its words.
func TestFailedRankEndsTheOtherRanks(t *testing.T) {
	root, _ := plant(t)
	broken := errors.New("broken")
	o := options{corpus.Options{Program: "pipes", Dir: root, Log: &lockedBuffer{}}}
	err := local(3, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 1 {
			return broken
		}
		return o.run(ctx, job)
	}, runtime.WithProvider("loop"))
	require.ErrorIs(t, err, broken)
}

// TestWrongCountsAreFound changes, drops and adds a word.
func TestWrongCountsAreFound(t *testing.T) {
	root, want := plant(t)
	for name, damage := range map[string]func(counts){
		"count": func(c counts) { c["the"]++ },
		"lost":  func(c counts) { delete(c, "the") },
		"extra": func(c counts) { c["other"] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			o := options{corpus.Options{Program: "pipes", Dir: root, Log: &log}}
			files, err := o.Folder().List(true)
			require.NoError(t, err)
			damaged := maps.Clone(want)
			damage(damaged)
			require.ErrorContains(t, o.check(t.Context(), damaged, files), "1 words differ")
		})
	}
}
