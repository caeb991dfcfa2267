//go:build linux

package launcher

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestErrorsThatDifferOnlyInTheRankArePrintedOnce(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(6, "say last")}, Grace: testwatch.Patience()})
	require.Len(t, o.Failures, 6)
	lines := o.stderr.lines()
	require.Len(t, lines, 4, "two of a first rank, one of rank 2, one about the rest: %v", lines)
	require.Contains(t, lines, "prog: rank 2: index 10")
	first := regexp.MustCompile(`prog: (rank \d): index 9\nclose by (rank \d)\n`).FindStringSubmatch(o.stderr.String())
	require.NotNil(t, first, lines)
	require.Equal(t, first[1], first[2])
	var others []int
	for _, f := range o.Failures {
		if f.Rank != 2 && "rank "+string(rune('0'+f.Rank)) != first[1] {
			others = append(others, f.Rank)
		}
	}
	require.Equal(t, "grun: "+bootstrap.Ranks(others)+": the same error as "+first[1], lines[3])
}

func TestErrorsOfRanksAreTagged(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(1, "say last")}, Tag: true})
	require.Equal(t, []string{"[0] prog: rank 0: index 9", "[0] close by rank 0"}, o.stderr.lines())
}

func TestErrorsOfRanksStayInTheirFiles(t *testing.T) {
	dir := t.TempDir()
	o := run(t, Spec{Programs: []Program{ranks(2, "say last")}, OutputDir: dir, Grace: testwatch.Patience()})
	require.Empty(t, o.stderr.String())
	text, err := os.ReadFile(filepath.Join(dir, "rank-1.log"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "prog: rank 1: index 9"))
}

func TestRankPrintsAnErrorThatIsTooLongForThePipe(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(1, "say too much")}})
	require.Equal(t, 0, o.ExitCode)
}

func TestLikeTellsTheOwnRankFromOtherRanksInAnError(t *testing.T) {
	for _, c := range []struct {
		first, then string
		news        bool
	}{
		{"rank 3: put at rank 0", "rank 0: put at rank 0", false},
		{"rank 0: put at rank 0", "rank 3: put at rank 0", false},
		{"rank 3: rank 1 is dead", "rank 0: rank 1 is dead", false},
		{"rank 3: rank 1 is dead", "rank 0: rank 2 is dead", true},
		{"rank 3: put at rank 3", "rank 0: put at rank 3", false},
		{"rank 3: index 3", "rank 0: index 0", true},
		{"rank 3: frank 3", "rank 0: frank 0", true},
	} {
		all := &finalErrors{}
		number := func(text string) int { return int(text[len("rank ")] - '0') }
		require.True(t, all.add(number(c.first), c.first))
		require.Equal(t, c.news, all.add(number(c.then), c.then), "%s, %s", c.first, c.then)
	}
}
