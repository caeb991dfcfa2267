package wq

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func newCompletions(depth int) *Completions {
	c := &Completions{}
	c.Init(depth)
	return c
}

// ids polls everything in batches of two.
func ids(t *testing.T, c *Completions) (all []uint64) {
	t.Helper()
	var wc [2]driver.Completion
	for {
		n, err := c.Poll(wc[:])
		require.NoError(t, err)
		if n == 0 {
			return all
		}
		for i := range n {
			all = append(all, wc[i].ID)
		}
	}
}

func TestCompletionsKeepTheirOrderOverManyLaps(t *testing.T) {
	c := newCompletions(3)
	require.False(t, c.Ready())
	for id := uint64(0); id < 30; id += 3 {
		for i := range uint64(3) {
			c.Push(driver.Completion{ID: id + i})
		}
		require.True(t, c.Ready())
		require.Equal(t, 3, c.Len())
		n, err := c.Poll(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Equal(t, []uint64{id, id + 1, id + 2}, ids(t, c))
	}
}

func TestWhatIsInTheQueueComesBeforeTheNewsThatOthersWereLost(t *testing.T) {
	c := newCompletions(2)
	for id := range uint64(3) {
		c.Push(driver.Completion{ID: id})
	}
	wc := make([]driver.Completion, 3)
	n, err := c.Poll(wc)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	for range 2 {
		n, err = c.Poll(wc)
		require.ErrorIs(t, err, driver.ErrOverrun)
		require.Zero(t, n)
		require.True(t, c.Ready())
	}
}

func TestPurgeTakesOutTheCompletionsOfOneQueuePair(t *testing.T) {
	c := newCompletions(8)
	for id := range uint64(6) {
		c.Push(driver.Completion{ID: id, QP: uint32(id % 2)})
	}
	c.Purge(1)
	require.Equal(t, []uint64{0, 2, 4}, ids(t, c))
	c.Purge(1)
	require.False(t, c.Ready())
}

func TestAClosedQueueTakesNothingMore(t *testing.T) {
	c := newCompletions(1)
	c.Close()
	for range 2 {
		c.Push(driver.Completion{})
	}
	require.True(t, c.Ready())
	_, err := c.Poll(make([]driver.Completion, 1))
	require.ErrorIs(t, err, driver.ErrClosed)
}

func TestCompletionsAreNeitherLostNorRepeatedUnderContention(t *testing.T) {
	const producers, consumers, each = 3, 3, 3000
	c := newCompletions(producers * each)
	var seen [producers * each]int
	var mu sync.Mutex
	total := 0
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				c.Push(driver.Completion{ID: uint64(p*each + i)})
			}
		})
	}
	for range consumers {
		wg.Go(func() {
			var wc [7]driver.Completion
			for done := false; !done; {
				n, err := c.Poll(wc[:])
				mu.Lock()
				for i := range n {
					seen[wc[i].ID]++
				}
				total += n
				done = total == producers*each || err != nil
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		require.Equal(t, 1, n, "completion %d", id)
	}
	require.Zero(t, c.Len())
}
