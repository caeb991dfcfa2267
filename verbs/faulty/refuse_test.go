package faulty

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestPartialPostTakesAPrefixAndSaysQueueFull(t *testing.T) {
	a, b := pair(t, Plan{PartialPosts: 1})
	wrs := []driver.WorkRequest{a.write(0, b, 0), a.write(1, b, 8), a.write(2, b, 16), a.write(3, b, 24)}
	partial := 0
	for range 50 {
		for rest := wrs; len(rest) > 0; {
			n, err := a.qp.PostSend(rest)
			if n < len(rest) {
				require.ErrorIs(t, err, driver.ErrQueueFull)
				require.Positive(t, n, "partial, not none")
				partial++
			} else {
				require.NoError(t, err)
			}
			rest = rest[n:]
		}
		a.expect(0, make([]driver.Status, len(wrs))...)
	}
	require.Positive(t, partial)
}

func TestQueueFullOnlyWhilePollingHelps(t *testing.T) {
	a, b := pair(t, Plan{QueueFull: 1, PartialPosts: 1})
	unsignaled := a.write(0, b, 0)
	unsignaled.Flags = 0
	for range depth/2 - 1 {
		a.post(unsignaled, unsignaled) // polling would not help: nothing will complete
	}
	a.post(a.write(1, b, 0))
	a.expect(1, driver.Success)
}

func TestPollingHelpsAgainstAFullQueue(t *testing.T) {
	a, b := pair(t, Plan{QueueFull: 1, DelayCompletions: 1})
	refused := 0
	for id := range uint64(50) {
		a.post(a.write(id, b, 0))
		n, err := a.qp.PostSend([]driver.WorkRequest{a.write(99, b, 0)})
		if err != nil {
			require.Zero(t, n)
			require.ErrorIs(t, err, driver.ErrQueueFull)
			refused++
			a.expect(id, driver.Success)
			continue
		}
		require.Equal(t, id, a.next().ID)
		require.Equal(t, uint64(99), a.next().ID)
	}
	require.Positive(t, refused)
}
