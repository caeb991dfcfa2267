//go:build linux

package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// A mutualRig holds two ranks over tcp that connect to each other. It counts their requests and resources.
type mutualRig struct {
	*rig
	counters [2]*counter
	remotes  [2]*fabric.Remote // of "x", by the rank that posts
	mu       sync.Mutex
	sent     []string                            // services with the rank that requested them
	gate     [2]func(service string, after bool) // by the rank that requests; nil: none
}

// never is an Expect that no test lives to see the end of, atOnce one that no rank meets.
const (
	never  = time.Hour
	atOnce = time.Nanosecond
)

func newMutualRig(t *testing.T, expect time.Duration) *mutualRig {
	m := &mutualRig{}
	i := 0
	open := func() driver.Provider {
		m.counters[i] = newCounter(tcp.New(tcp.Config{Listen: "127.0.0.1"}))
		i++
		return m.counters[i-1]
	}
	m.rig = newRigWith(t, 2, fabric.Config{FMAMax: -1, Expect: expect}, open, func(from int, _ fabric.Control) fabric.Control {
		return func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
			m.mu.Lock()
			m.sent = append(m.sent, fmt.Sprint(service, " ", from))
			m.mu.Unlock()
			m.at(from, service, false)
			reply, err := m.ranks[rank].Serve(context.Background(), from, service, payload)
			m.at(from, service, true)
			return reply, err
		}
	})
	for rank := range 2 {
		m.region(t, rank, 64, "x")
	}
	return m
}

func (m *mutualRig) at(from int, service string, after bool) {
	m.mu.Lock()
	gate := m.gate[from]
	m.mu.Unlock()
	if gate != nil {
		gate(service, after)
	}
}

// hold stops a rank's first request for a connection, ahead of the target or behind it, until release is called.
func (m *mutualRig) hold(t *testing.T, from int, behind bool) (reached <-chan struct{}, release func()) {
	there, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.mu.Lock()
	m.gate[from] = func(service string, after bool) {
		if service != "connect" || after != behind {
			return
		}
		once.Do(func() {
			close(there)
			<-free
		})
	}
	m.mu.Unlock()
	release = sync.OnceFunc(func() { close(free) })
	t.Cleanup(release)
	return there, release
}

// requests returns what the ranks have requested.
func (m *mutualRig) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.sent...)
}

// start has a rank connect to the other one, which does the same.
func (m *mutualRig) start(rank int) { m.ranks[rank].StartPeers([]int{1 - rank}, "x", true) }

// use has a rank write to the other one's memory and read it back.
func (m *mutualRig) use(t *testing.T, rank int, value byte) {
	if m.remotes[rank] == nil {
		var err error
		m.remotes[rank], err = m.ranks[rank].Resolve(watched(t), 1-rank, "x")
		require.NoError(t, err)
	}
	remote := m.remotes[rank]
	require.NoError(t, remote.Write(watched(t), 8*rank, []byte{value}))
	require.NoError(t, remote.Peer.Flush(watched(t)))
	got := []byte{0}
	require.NoError(t, remote.Read(watched(t), 8*rank, got))
	require.Equal(t, value, got[0])
}

// useBoth checks both directions, and that each rank has its own queue pair for each.
func (m *mutualRig) useBoth(t *testing.T) {
	m.use(t, 0, 1)
	m.use(t, 1, 2)
	m.holds(t, 2)
}

// holds waits until each rank has n queue pairs.
func (m *mutualRig) holds(t *testing.T, n int64) {
	for rank, y := range m.counters {
		require.Eventually(t, func() bool { return y.qps.Load() == n }, testwatch.Patience(), time.Millisecond, "rank %d has %d", rank, y.qps.Load())
	}
}

func TestOneRequestConnectsRanksThatNeedEachOther(t *testing.T) {
	for _, first := range []int{0, 1} {
		m := newMutualRig(t, never)
		m.start(first)
		m.start(1 - first)
		m.useBoth(t)
		require.Equal(t, []string{"connect 0"}, m.requests(), "it brings both regions, too")
	}
}

func TestRequestConnectsARankThatHasYetToNeedTheOther(t *testing.T) {
	m := newMutualRig(t, never)
	m.start(0)
	m.use(t, 0, 1)
	m.use(t, 1, 2)
	m.start(1)
	m.useBoth(t)
	require.Equal(t, []string{"connect 0"}, m.requests())
}

func TestRankThatMeetsNobodyConnectsAlone(t *testing.T) {
	m := newMutualRig(t, atOnce)
	m.start(1)
	m.use(t, 1, 1)
	require.Equal(t, "connect 1", m.requests()[0])
	m.start(0)
	m.useBoth(t)
}

// TestRankExpectsNoRequestOfOneThatHasConnected by a request that offers nothing: earlier, or while it waits.
func TestRankExpectsNoRequestOfOneThatHasConnected(t *testing.T) {
	for _, earlier := range []bool{true, false} {
		m := newMutualRig(t, never)
		if !earlier {
			m.start(1)
		}
		m.use(t, 0, 1)
		m.start(1)
		m.useBoth(t)
		require.Equal(t, []string{"connect 0", "connect 1"}, m.requests())
	}
}

// TestRequestsThatCrossConnectEachRankAlone holds both requests, and then lets them go on in either order.
func TestRequestsThatCrossConnectEachRankAlone(t *testing.T) {
	for _, first := range []int{0, 1} {
		m := newMutualRig(t, atOnce)
		var release [2]func()
		for _, rank := range []int{1, 0} {
			var reached <-chan struct{}
			reached, release[rank] = m.hold(t, rank, false)
			m.start(rank)
			<-reached
		}
		release[first]()
		m.use(t, first, 1)
		release[1-first]()
		m.useBoth(t)
		require.ElementsMatch(t, []string{"connect 0", "connect 1"}, m.requests())
	}
}

// failsAt has a hook return an error at its call of a number, from 1 on.
func failsAt(hook *atomic.Pointer[func() error], call int32, err error) {
	var calls atomic.Int32
	f := func() error {
		if calls.Add(1) == call {
			return err
		}
		return nil
	}
	hook.Store(&f)
}

// TestFailedQueuePairOfAMutualRequestReachesItsCallerAlone has one of the four queue pairs find no descriptor. The rank whose
// own direction fails gets the error, and its next attempt works.
func TestFailedQueuePairOfAMutualRequestReachesItsCallerAlone(t *testing.T) {
	for _, c := range []struct {
		name         string
		at           int // the rank that finds no descriptor
		call         int32
		fails, where int // the rank that gets an error, -1: none; and the rank that it names
	}{
		{"lower rank, its own", 0, 1, 0, 0},
		{"lower rank, passive", 0, 2, -1, 0},
		{"higher rank, passive", 1, 1, 0, 1},
		{"higher rank, its own", 1, 2, -1, 0},
	} {
		for _, first := range []int{0, 1} {
			t.Run(fmt.Sprint(c.name, ", first ", first), func(t *testing.T) {
				m := newMutualRig(t, never)
				failsAt(&m.counters[c.at].onRTR, c.call, memory.Descriptors(unix.EMFILE))
				m.start(first)
				m.start(1 - first)
				if c.fails >= 0 {
					_, err := m.ranks[c.fails].Peer(watched(t), 1-c.fails)
					if err != nil { // else the other rank's own request has connected this one by now
						require.ErrorIs(t, err, driver.ErrExhausted)
						var named *fabric.RankError
						require.ErrorAs(t, err, &named)
						require.Equal(t, c.where, named.Rank)
					}
				}
				if first == 1 {
					m.use(t, 1, 2) // it has expected a request, and expects no further one
				}
				m.useBoth(t)
			})
		}
	}
}

// endings end the wait of rank 1 for rank 0.
var endings = map[string]struct {
	end   func(m *mutualRig) error
	cause error
}{
	"death of the other rank": {func(m *mutualRig) error { m.ranks[1].RankDied(0, "killed"); return nil }, fabric.ErrRankDead},
	"end of the job":          {func(m *mutualRig) error { m.ranks[1].End(fabric.ErrAborted, "for the test"); return nil }, fabric.ErrAborted},
	"close":                   {func(m *mutualRig) error { return m.ranks[1].Close() }, fabric.ErrClosed},
}

// TestMutualDialEndsWithTheRankOrTheJob has rank 1 wait for a request, or for the end that such a request offers: rank 0
// does not get the response.
func TestMutualDialEndsWithTheRankOrTheJob(t *testing.T) {
	for name, c := range endings {
		for _, accepts := range []bool{false, true} {
			for _, called := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", accepts ", accepts, ", called ", called), func(t *testing.T) {
					m := newMutualRig(t, never)
					ended := make(chan error, 1)
					peer := func() {
						_, err := m.ranks[1].PeerFor(watched(t), 0, "x")
						ended <- err
					}
					release := func() {}
					if accepts {
						var reached <-chan struct{}
						reached, release = m.hold(t, 0, true)
						m.start(0)
						<-reached
					} else {
						m.start(1)
					}
					if called {
						go peer()
					}
					require.NoError(t, c.end(m))
					if !called {
						peer()
					}
					require.ErrorIs(t, <-ended, c.cause)
					release()
					if accepts && !errors.Is(c.cause, fabric.ErrClosed) { // else rank 1 has no end
						_, err := m.ranks[0].Peer(watched(t), 1)
						require.NoError(t, err)
					}
					require.NoError(t, m.ranks[0].Close())
					require.NoError(t, m.ranks[1].Close())
					require.Zero(t, m.counters[0].qps.Load()+m.counters[1].qps.Load())
				})
			}
		}
	}
}

// TestRankThatClosesDuringAMutualRequestLeavesTheOtherNoWait closes rank 0 behind its request. Rank 1 expects the response to a
// request of its own, then.
func TestRankThatClosesDuringAMutualRequestLeavesTheOtherNoWait(t *testing.T) {
	m := newMutualRig(t, time.Millisecond)
	reached, release := m.hold(t, 0, true)
	_, request := m.hold(t, 1, false)
	m.start(0)
	<-reached
	closed := make(chan error, 1)
	go func() { closed <- m.ranks[0].Close() }()
	<-fabric.Closing(m.ranks[0])
	request()
	release()
	require.NoError(t, <-closed)
	_, err := m.ranks[1].Peer(watched(t), 0)
	require.ErrorIs(t, err, fabric.ErrClosed)
	require.NoError(t, m.ranks[1].Gone([]int{0}))
}

// TestLateEndOfAMutualRequestLosesNoRank has rank 1 connect alone while rank 0 has yet to connect the end that rank 1 accepted.
func TestLateEndOfAMutualRequestLosesNoRank(t *testing.T) {
	t.Parallel() // it sleeps for a second or more
	m := newMutualRig(t, time.Millisecond)
	reached, release := m.hold(t, 0, true)
	m.start(0)
	<-reached
	m.start(1)
	m.use(t, 1, 1)
	release()
	m.useBoth(t)
	require.Equal(t, []string{"connect 0", "connect 1"}, m.requests())
	time.Sleep(pastGrace)
	for rank := range 2 {
		require.NoError(t, m.ranks[rank].Gone([]int{1 - rank}))
		m.use(t, rank, 5)
	}
}

// TestManyRanksConnectBothWays has ranks connect in all orders at once, while some wait too short a time.
func TestManyRanksConnectBothWays(t *testing.T) {
	for _, expect := range []time.Duration{atOnce, time.Millisecond, never} {
		const n = 6
		r := newRigWith(t, n, fabric.Config{FMAMax: -1, Expect: expect}, func() driver.Provider { return tcp.New(tcp.Config{Listen: "127.0.0.1"}) },
			func(_ int, next fabric.Control) fabric.Control { return next })
		for rank := range n {
			r.region(t, rank, 8*n, "x")
		}
		var ranks sync.WaitGroup
		for rank := range n {
			ranks.Go(func() {
				others := rand.Perm(n)
				r.ranks[rank].StartPeers(others, "x", rank != 2)
				for _, other := range others {
					remote, err := r.ranks[rank].Resolve(watched(t), other, "x")
					if assert.NoError(t, err) {
						assert.NoError(t, remote.Write(watched(t), 8*rank, []byte{byte(rank + 1)}))
						assert.NoError(t, remote.Peer.Flush(watched(t)))
					}
				}
			})
		}
		ranks.Wait()
		for rank := range n {
			require.NoError(t, r.ranks[rank].Close())
		}
	}
}
