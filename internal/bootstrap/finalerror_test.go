package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseFinalErrorRefusesRanksOutsideTheJob(t *testing.T) {
	w, err := ParseFinalError([]byte(`{"rank":2,"text":"rank 2: no"}`), 3)
	require.NoError(t, err)
	require.Equal(t, FinalError{2, "rank 2: no"}, w)
	for _, line := range []string{``, `x`, `{"rank":3}`, `{"rank":-1}`, `{"rank":"0"}`, `[]`} {
		_, err := ParseFinalError([]byte(line), 3)
		require.Error(t, err, line)
	}
}

func TestSendFinalErrorWritesToAPipeOnly(t *testing.T) {
	require.False(t, SendFinalError("no rank"))
	for _, path := range []string{"", "/no/such/file", "/dev/null", t.TempDir()} {
		require.Error(t, FinalError{0, "text"}.send(path))
	}
}

func FuzzFinalError(f *testing.F) {
	f.Add([]byte(`{"rank":2,"text":"rank 2: no"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if w, err := ParseFinalError(line, 3); err == nil && (w.Rank < 0 || w.Rank >= 3) {
			t.Fatal(w)
		}
	})
}
