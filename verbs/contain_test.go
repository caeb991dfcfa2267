package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestContainsIsIntervalArithmetic(t *testing.T) {
	arena := make([]byte, 64)
	interval := func(t *rapid.T, name string) (from, to int) { // not empty: such segments are not looked at
		from = rapid.IntRange(0, len(arena)-1).Draw(t, name+" from")
		return from, rapid.IntRange(from+1, len(arena)).Draw(t, name+" to")
	}
	rapid.Check(t, func(t *rapid.T) {
		wf, wt := interval(t, "whole")
		pf, pt := interval(t, "part")
		require.Equal(t, wf <= pf && pt <= wt, contains(arena[wf:wt:wt], arena[pf:pt:pt]))
	})
	require.False(t, contains(arena, make([]byte, 8)), "other memory")
}
