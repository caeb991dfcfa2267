package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLastWordsAreThoseOfARankOfTheJob(t *testing.T) {
	w, err := ParseLastWords([]byte(`{"rank":2,"text":"rank 2: no"}`), 3)
	require.NoError(t, err)
	require.Equal(t, LastWords{2, "rank 2: no"}, w)
	for _, line := range []string{``, `x`, `{"rank":3}`, `{"rank":-1}`, `{"rank":"0"}`, `[]`} {
		_, err := ParseLastWords([]byte(line), 3)
		require.Error(t, err, line)
	}
}

func TestLastWordsGoToNothingButAPipe(t *testing.T) {
	require.False(t, SayLast("no rank"))
	for _, path := range []string{"", "/no/such/file", "/dev/null", t.TempDir()} {
		require.Error(t, LastWords{0, "text"}.send(path))
	}
}

func FuzzLastWords(f *testing.F) {
	f.Add([]byte(`{"rank":2,"text":"rank 2: no"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if w, err := ParseLastWords(line, 3); err == nil && (w.Rank < 0 || w.Rank >= 3) {
			t.Fatal(w)
		}
	})
}
