package corpus

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func split(t require.TestingT, r *bufio.Reader) []string {
	var got []string
	require.NoError(t, eachWord(context.Background(), r, func(w []byte) { got = append(got, string(w)) }))
	return got
}

// TestWordsDoNotDependOnTheBuffer compares with splitting the whole text, with
// reads and buffers of all sizes.
func TestWordsDoNotDependOnTheBuffer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`([a-cA-C]{0,40}[^a-zA-Z]{0,3}){0,20}`).Draw(rt, "text")
		want := strings.FieldsFunc(text, func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' })
		var lower []string
		for _, w := range want {
			lower = append(lower, strings.ToLower(w))
		}
		size := rapid.IntRange(16, 64).Draw(rt, "buffer")
		require.Equal(rt, lower, split(rt, bufio.NewReaderSize(strings.NewReader(text), size)))
		require.Equal(rt, lower, split(rt, bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), size)))
		require.Equal(rt, lower, split(rt, bufio.NewReaderSize(iotest.DataErrReader(strings.NewReader(text)), size)))
	})
}

func TestReaderReturnsWordsBeforeTheReadError(t *testing.T) {
	broken := errors.New("broken")
	r := bufio.NewReader(iotest.DataErrReader(&failing{strings.NewReader("some words"), broken}))
	words := Counts{}
	require.ErrorIs(t, eachWord(context.Background(), r, words.Add), broken)
	require.Len(t, words, 2)
}

func TestCountingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	require.ErrorIs(t, eachWord(ctx, bufio.NewReader(strings.NewReader("words")), func([]byte) {}), cause)
}

func TestCountOfAKnownWordAllocatesNothing(t *testing.T) {
	words, word := Counts{}, []byte("known")
	words.Add(word)
	require.Zero(t, testing.AllocsPerRun(100, func() { words.Add(word) }))
}

// failing ends with an error instead of io.EOF.
type failing struct {
	*strings.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil {
		err = f.err
	}
	return n, err
}
