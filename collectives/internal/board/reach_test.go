package board

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// foundBy returns the members whose boards a member found in one call of all, by member.
func foundBy(t *testing.T, n int, c call) [][]int {
	t.Helper()
	r := newRig(t, n, tiny)
	require.NoError(t, r.each(func(b *Board) error { return b.one(testwatch.Context(t), r, 0, &c) }))
	for _, found := range r.found {
		slices.Sort(found)
	}
	return r.found
}

func TestMembersFindTheBoardsThatACallNeeds(t *testing.T) {
	const n = 7 // more than have the last one to come open gates
	for what, c := range map[string]struct {
		call call
		want [][]int
	}{
		"AllReduce": {call{kind: allReduce, elems: 1, op: operators[0]}, [][]int{{1, 2, 3, 4, 5, 6}, {0}, {0}, {0}, {0}, {0}, {0}}},
		"Scan":      {call{kind: scan, elems: 1, op: operators[0]}, [][]int{{1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 6}, {5}}},
		"Reduce":    {call{kind: reduce, root: 1, elems: 1, op: operators[0]}, [][]int{{1}, {0, 2, 3, 4, 5, 6}, {1}, {1}, {1}, {1}, {1}}},
		"Broadcast": {call{kind: broadcast, elems: 1, op: operators[0]}, [][]int{{1, 2, 3, 4, 5, 6}, {0}, {0}, {0}, {0}, {0}, {0}}},
	} {
		t.Run(what, func(t *testing.T) { require.Equal(t, c.want, foundBy(t, n, c.call)) })
	}
}

// TestCallFailsIfABoardIsNotFound and so does each later call of the member.
func TestCallFailsIfABoardIsNotFound(t *testing.T) {
	failed := errors.New("no descriptors")
	r := newRig(t, 4, tiny)
	r.boards[3].find = func(context.Context, []int, Found) error { return failed }
	c := call{kind: allReduce, elems: 1, op: operators[0]}
	require.ErrorIs(t, r.boards[3].one(testwatch.Context(t), r, 0, &c), failed)
	require.ErrorIs(t, r.boards[3].one(testwatch.Context(t), r, 1, &c), failed)
}

// TestRootedCallsInARowFindTheRootsBoardOnly makes more turns than a board has lines. A member
// that waited for all others, or told them how far it is, would find their boards.
func TestRootedCallsInARowFindTheRootsBoardOnly(t *testing.T) {
	const n, root = 7, 1
	for what, c := range map[string]call{
		"Broadcast": {kind: broadcast, root: root, elems: 1, op: operators[0]},
		"Scatter":   {kind: scatter, root: root, elems: 1, op: operators[0]},
		"Gather":    {kind: gather, root: root, elems: 1, op: operators[0]},
		"Reduce":    {kind: reduce, root: root, elems: 1, op: operators[0]},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, n, tiny)
			for i := range 4 * lines {
				require.NoError(t, r.each(func(b *Board) error { return b.one(testwatch.Context(t), r, i, &c) }))
			}
			for m, found := range r.found {
				slices.Sort(found)
				want := []int{root}
				if m == root {
					want = []int{0, 2, 3, 4, 5, 6}
				}
				require.Equal(t, want, found, "member %d", m)
			}
		})
	}
}
