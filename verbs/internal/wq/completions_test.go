package wq

import (
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func newCompletions(depth int) (*Completions, *Life) {
	c := &Completions{}
	c.Init(depth)
	return c, &Life{}
}

func push(c *Completions, id uint64, life *Life) { c.Push(&driver.Completion{ID: id}, life) }

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
	for depth := uint64(1); depth < 10; depth++ {
		c, life := newCompletions(int(depth))
		require.False(t, c.Ready())
		for id := uint64(0); id < 30*depth; id += depth {
			var want []uint64
			for i := range depth {
				push(c, id+i, life)
				want = append(want, id+i)
			}
			require.True(t, c.Ready())
			n, err := c.Poll(nil)
			require.NoError(t, err)
			require.Zero(t, n)
			require.Equal(t, want, ids(t, c))
			require.True(t, c.Empty())
		}
	}
}

func TestPollReturnsQueuedCompletionsBeforeErrOverrun(t *testing.T) {
	for depth := 1; depth < 10; depth++ {
		c, life := newCompletions(depth)
		for id := range uint64(depth + 1) {
			push(c, id, life)
		}
		wc := make([]driver.Completion, depth+1)
		n, err := c.Poll(wc)
		require.NoError(t, err)
		require.Equal(t, depth, n)
		for range 2 {
			n, err = c.Poll(wc)
			require.ErrorIs(t, err, driver.ErrOverrun)
			require.Zero(t, n)
			require.True(t, c.Ready())
			push(c, 99, life) // a request that completes late
		}
	}
}

func TestEndOfALifeRemovesItsCompletions(t *testing.T) {
	c, life := newCompletions(8)
	var other Life
	for id := range uint64(6) {
		push(c, id, []*Life{&other, life}[id%2])
	}
	life.End()
	push(c, 7, life)
	require.EqualValues(t, 1, life.Now())
	require.Equal(t, []uint64{0, 2, 4, 7}, ids(t, c))
	push(c, 8, &other)
	other.End()
	require.Empty(t, ids(t, c))
	require.False(t, c.Ready())
}

func TestPollForgetsTheCompletion(t *testing.T) {
	c, life := newCompletions(1)
	c.Push(&driver.Completion{Err: driver.ErrLost}, life)
	var wc [1]driver.Completion
	_, err := c.Poll(wc[:])
	require.NoError(t, err)
	require.ErrorIs(t, wc[0].Err, driver.ErrLost)
	require.NoError(t, c.places[0].wc.Err)
	require.Nil(t, c.places[0].life)
}

func TestClosedQueueTakesNoCompletion(t *testing.T) {
	c, life := newCompletions(1)
	c.Close()
	for range 2 {
		push(c, 1, life)
	}
	require.True(t, c.Ready())
	n, err := c.Poll(make([]driver.Completion, 1))
	require.ErrorIs(t, err, driver.ErrClosed)
	require.Zero(t, n)
}

func TestCompletionsAreNeitherLostNorRepeatedUnderContention(t *testing.T) {
	const producers, consumers, each = 4, 3, 5000
	c, life := newCompletions(producers * each)
	var seen [producers * each]byte
	var mu sync.Mutex
	var wg sync.WaitGroup
	total := 0
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				push(c, uint64(p*each+i), life)
			}
		})
	}
	for range consumers {
		wg.Go(func() {
			var wc [7]driver.Completion
			last := [producers]int{}
			for done := false; !done; {
				n, err := c.Poll(wc[:])
				mu.Lock()
				for i := range n {
					seen[wc[i].ID]++
				}
				total += n
				done = total == producers*each || err != nil
				mu.Unlock()
				for i := range n {
					p, at := int(wc[i].ID)/each, int(wc[i].ID)%each+1
					if at <= last[p] {
						t.Errorf("completion %d of producer %d after %d", at, p, last[p])
					}
					last[p] = at
				}
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		require.EqualValues(t, 1, n, "completion %d", id)
	}
}

func TestPushWaitsForAPopThatIsUnderWay(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1)) // the pop goes on when the push lets it
	c, life := newCompletions(4)
	for id := range uint64(4) {
		push(c, id, life)
	}
	c.head.Add(1) // a pop has taken the first completion, and not stored its place's turn
	go c.places[0].turn.Store(2)
	push(c, 4, life)
	require.Equal(t, []uint64{1, 2, 3, 4}, ids(t, c))
}
