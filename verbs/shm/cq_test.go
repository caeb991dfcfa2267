package shm

import (
	"context"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func newTestCQ(t *testing.T, depth int) (*CQ, *QP) {
	t.Helper()
	c, err := New(Config{}).Open(context.Background(), "", driver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	cq, err := c.CreateCQ(context.Background(), depth)
	require.NoError(t, err)
	owner := &QP{epoch: 1}
	owner.live.Store(owner.epoch)
	return cq.(*CQ), owner
}

func TestCQKeepsOrderOverManyLaps(t *testing.T) {
	cq, owner := newTestCQ(t, 5)
	var wc [3]driver.Completion
	next := uint64(0)
	for id := uint64(0); id < 1000; {
		for range 4 {
			cq.push(&driver.Completion{ID: id}, owner)
			id++
		}
		for got := 0; got < 4; {
			n, err := cq.Poll(wc[:])
			require.NoError(t, err)
			for _, c := range wc[:n] {
				require.Equal(t, next, c.ID)
				next++
			}
			got += n
		}
	}
}

func TestCQHoldsItsDepthAndReportsTheNextAsLost(t *testing.T) {
	cq, owner := newTestCQ(t, 5)
	for id := range uint64(6) {
		cq.push(&driver.Completion{ID: id}, owner)
	}
	var wc [8]driver.Completion
	n, err := cq.Poll(wc[:])
	require.NoError(t, err)
	require.Equal(t, 5, n)
	for range 2 {
		_, err = cq.Poll(wc[:])
		require.ErrorIs(t, err, driver.ErrOverrun)
	}
}

func TestCQLosesAndRepeatsNothingUnderContention(t *testing.T) {
	const producers, consumers, each = 4, 3, 5000
	cq, owner := newTestCQ(t, producers*each)
	var seen [producers * each]byte
	var mu sync.Mutex
	var wg sync.WaitGroup
	total := 0
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				cq.push(&driver.Completion{ID: uint64(p*each + i)}, owner)
			}
		})
	}
	for range consumers {
		wg.Go(func() {
			var wc [7]driver.Completion
			last := [producers]int{}
			for {
				n, err := cq.Poll(wc[:])
				mu.Lock()
				for _, c := range wc[:n] {
					seen[c.ID]++
				}
				total += n
				done := total == producers*each || err != nil
				mu.Unlock()
				for _, c := range wc[:n] {
					p, i := int(c.ID)/each, int(c.ID)%each+1
					if i <= last[p] {
						t.Errorf("completion %d of producer %d after %d", i, p, last[p])
					}
					last[p] = i
				}
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		require.EqualValues(t, 1, n, "completion %d", id)
	}
}

func TestCQPushWaitsForAPopThatIsUnderWay(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1)) // the pop goes on when the push lets it
	cq, owner := newTestCQ(t, 4)
	for id := range uint64(4) {
		cq.push(&driver.Completion{ID: id}, owner)
	}
	cq.head.Add(1) // a pop has taken the first completion, and not stored its slot's turn
	go cq.slots[0].turn.Store(4)
	cq.push(&driver.Completion{ID: 4}, owner)
	var wc [8]driver.Completion
	n, err := cq.Poll(wc[:])
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, uint64(4), wc[3].ID)
	_, err = cq.Poll(wc[:])
	require.NoError(t, err)
}

func TestClosedCQSaysSoAndLetsWaitersGo(t *testing.T) {
	cq, _ := newTestCQ(t, 4)
	waited := make(chan error, 1)
	go func() {
		for {
			if err := cq.Wait(context.Background()); err != nil {
				waited <- err
				return
			}
		}
	}()
	require.NoError(t, cq.Close())
	require.ErrorIs(t, <-waited, driver.ErrClosed)
	_, err := cq.Poll(make([]driver.Completion, 1))
	require.ErrorIs(t, err, driver.ErrClosed)
}
