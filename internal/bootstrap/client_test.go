package bootstrap

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeathAndAbortReachEveryOtherRank(t *testing.T) {
	s := newServer(t, 3, Hooks{})
	type news struct {
		at, rank int
		what     string
	}
	got := make(chan news, 10)
	c := joinAll(t, s, overPipe, func(at int) Events {
		return Events{
			Dead:  func(rank int, cause string) { got <- news{at, rank, "dead " + cause} },
			Abort: func(rank int, cause string) { got <- news{at, rank, "abort " + cause} },
		}
	})
	require.NoError(t, c[1].Abort("wrong input"))
	require.ElementsMatch(t, []news{{0, 1, "abort wrong input"}, {2, 1, "abort wrong input"}},
		[]news{receive(t, got), receive(t, got)})
	s.RankDied(0, "SIGKILL")
	require.ElementsMatch(t, []news{{1, 0, "dead SIGKILL"}, {2, 0, "dead SIGKILL"}},
		[]news{receive(t, got), receive(t, got)})
}

func TestNewsReachRanksThatJoinLater(t *testing.T) {
	s := newServer(t, 2, Hooks{})
	s.RankDied(0, "exited with code 1")
	causes := make(chan string, 1)
	c, err := NewClient(watchdog(t), overPipe(t, s), testSecret, 1, Events{
		Dead: func(_ int, cause string) { causes <- cause },
	})
	require.NoError(t, err)
	defer c.Close(watchdog(t))
	require.Equal(t, "exited with code 1", receive(t, causes))
}

func TestCloseReportsALeaveNotADeath(t *testing.T) {
	eachTransport(t, func(t *testing.T, via connect) {
		var leftRank atomic.Int32
		var reported sync.Map
		s := newServer(t, 3, Hooks{
			Left:     func(rank int) { leftRank.Store(int32(rank)) },
			Reported: func(rank int, name string, p []byte) { reported.Store(name, string(p)) },
		})
		dead := make(chan int, 3)
		c := joinAll(t, s, via, func(int) Events { return Events{Dead: func(rank int, _ string) { dead <- rank }} })
		require.NoError(t, c[1].Report("stats", []byte("{}")))
		require.NoError(t, c[1].Close(watchdog(t)))
		require.NoError(t, c[1].Close(watchdog(t)), "idempotent")
		require.EqualValues(t, 1, leftRank.Load(), "acknowledged means the launcher knows")
		stats, _ := reported.Load("stats")
		require.Equal(t, "{}", stats)
		s.RankDied(1, "exited with code 0")
		s.RankDied(2, "SIGKILL")
		require.Equal(t, 2, receive(t, dead), "the first death anyone hears of")
		_, err := c[1].Call(watchdog(t), 0, "s", nil)
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, c[1].Tell(0, "s", nil), ErrClosed)
	})
}

func TestLossOfTheRendezvousEndsEverything(t *testing.T) {
	eachTransport(t, func(t *testing.T, via connect) {
		s := newServer(t, 2, Hooks{})
		lost := make(chan error, 2)
		c := joinAll(t, s, via, func(int) Events { return Events{Lost: func(err error) { lost <- err }} })
		errs := make(chan error, 1)
		go func() {
			_, err := c[0].Exchange(watchdog(t), "k", ranks(2), nil)
			errs <- err
		}()
		s.Close()
		require.ErrorIs(t, receive(t, errs), ErrLost)
		require.ErrorIs(t, receive(t, lost), ErrLost)
		require.ErrorIs(t, receive(t, lost), ErrLost)
		_, err := c[1].Call(watchdog(t), 0, "s", nil)
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, c[1].Close(watchdog(t)), ErrLost)
	})
}

func TestLossWithoutGoodbyeIsADeathWithoutALostHook(t *testing.T) {
	dead := make(chan int, 1)
	c := joinAll(t, newServer(t, 2, Hooks{}), overPipe, func(int) Events {
		return Events{Dead: func(rank int, _ string) { dead <- rank }}
	})
	c[1].conn.Close()
	require.Equal(t, 1, receive(t, dead))
}

func TestLossCallsTheLostHook(t *testing.T) {
	lost := make(chan int, 1)
	s := newServer(t, 2, Hooks{Lost: func(rank int, _ error) { lost <- rank }})
	c := joinAll(t, s, overTCP, nil)
	c[1].conn.Close()
	require.Equal(t, 1, receive(t, lost))
	require.Equal(t, joined, func() state { s.mu.Lock(); defer s.mu.Unlock(); return s.members[1].state }())
}
