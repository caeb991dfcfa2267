package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// elements parses a document and counts its elements by name.
func elements(t *testing.T, document string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(document)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok {
			count[start.Name.Local]++
		}
	}
}

func TestWriteDrawsAllMarks(t *testing.T) {
	left, right := &Panel{Title: "a < b & c"}, &Panel{}
	left.Dots(3, []Point{{0, 0}, {10, 20}, {5, 5}})
	left.Cross(Point{1, 1})
	right.Line(0, []Point{{0, 3}, {1, 2}, {2, 1}})
	var out strings.Builder
	require.NoError(t, Write(&out, left, right))
	got := elements(t, out.String())
	require.Equal(t, 3, got["circle"])
	require.Equal(t, 1, got["path"])
	require.Equal(t, 1, got["polyline"])
	require.Contains(t, out.String(), "a &lt; b &amp; c")
	require.Contains(t, out.String(), `points="0.0,0.0 240.0,240.0 480.0,480.0 "`, "the greatest y is on top")
}

func TestPanelsOfNothingAndOfOnePointAreDrawn(t *testing.T) {
	one := &Panel{}
	one.Dots(99, []Point{{7, 7}})
	var out strings.Builder
	require.NoError(t, Write(&out, &Panel{}, one))
	require.Equal(t, 1, elements(t, out.String())["circle"])
	require.Contains(t, out.String(), `cx="240.0" cy="240.0"`)
	require.NotContains(t, out.String(), "NaN")
	require.NotContains(t, out.String(), "Inf")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteReturnsTheErrorOfItsWriter(t *testing.T) {
	require.ErrorIs(t, Write(full{}, &Panel{}), io.ErrShortWrite)
}
