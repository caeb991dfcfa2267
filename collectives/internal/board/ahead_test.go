package board

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestFirstMemberOfScansIsAheadOfTheLastByMoreThanItsLines has member 1 use all its lines while member 2 makes
// no call. Member 0 then makes as many calls as a member is ahead, and waits in the next one.
func TestFirstMemberOfScansIsAheadOfTheLastByMoreThanItsLines(t *testing.T) {
	require.Greater(t, Ahead, lines)
	for _, k := range []kind{scan, exScan} {
		t.Run(kindNames[k], func(t *testing.T) {
			r, ctx := newRig(t, 3, tiny), testwatch.Context(t)
			c := call{kind: k, elems: 1, op: operators[0]}
			calls := func(m, from, to int) (err error) {
				for i := from; i < to && err == nil; i++ {
					err = r.boards[m].one(ctx, r, i, &c)
				}
				return err
			}
			var others errgroup.Group
			others.Go(func() error { return calls(1, 0, Ahead+1) })
			require.NoError(t, calls(0, 0, Ahead))
			waits := 0
			await := r.boards[0].await
			r.boards[0].await = func(ctx context.Context, ready func() bool) error {
				if waits++; waits == 1 {
					others.Go(func() error { return calls(2, 0, Ahead+1) })
				}
				return await(ctx, ready)
			}
			require.NoError(t, calls(0, Ahead, Ahead+1))
			require.Positive(t, waits, "member 0 does not wait for the last one, which has made no call")
			require.NoError(t, others.Wait())
		})
	}
}

// TestDiffersNamesAMemberThatHasWrittenItsLineAgain has three members make three different calls. Member 1 gives
// blocks to member 2, which takes none but has left its own turns. So member 1 writes its first line again
// before member 0 reads that line.
func TestDiffersNamesAMemberThatHasWrittenItsLineAgain(t *testing.T) {
	r, ctx := newRig(t, 3, tiny), testwatch.Context(t)
	calls := func(m, n int, c call) (err error) {
		for i := 0; i < n && err == nil; i++ {
			err = c.make(ctx, r.boards[m], uint64(i+1), c.args(r, m))
		}
		return err
	}
	require.NoError(t, calls(2, lines, call{kind: broadcast, root: 2, elems: 1, op: operators[0]}))
	require.NoError(t, calls(1, lines+1, call{kind: gather, root: 2, elems: 1, op: operators[0]}))
	var differs *Differs
	require.ErrorAs(t, calls(0, 1, call{kind: scatter, root: 1, elems: 1, op: operators[0]}), &differs)
	require.Equal(t, 1, differs.Member)
	require.EqualValues(t, lines+1, differs.Seq)
}
