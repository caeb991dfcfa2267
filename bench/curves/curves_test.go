package curves

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"
)

func TestDrawReturnsAnElementWithEscapedNames(t *testing.T) {
	points := plotter.XYs{{X: 8, Y: 0.01}, {X: 4096, Y: 3}}
	svg, err := Draw("a title", "us", []Curve{{Name: "<b>", Points: points}, {Name: "strong", Points: points, Strong: true}})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(svg), "<svg"))
	for _, text := range []string{"a title", "bytes", "us", "strong", "&lt;b&gt;"} {
		require.Contains(t, string(svg), text)
	}
}

func TestDrawRefusesACurveWithoutPoints(t *testing.T) {
	_, err := Draw("a title", "us", []Curve{{Name: "none"}})
	require.ErrorContains(t, err, `curve "none" of a title`)
}
