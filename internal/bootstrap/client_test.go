package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestExchangeGivesEveryoneTheBytesOfAllInMemberOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			eachTransport(t, func(t *testing.T, via connect) {
				clients := joinAll(t, newServer(t, n, Hooks{}), via, nil)
				members := ranks(n)
				members[0], members[n-1] = members[n-1], members[0]
				var g errgroup.Group
				for r, c := range clients {
					g.Go(func() error {
						for round := range 10 {
							key := fmt.Sprint("round ", round)
							all, err := c.Exchange(watchdog(t), key, members, []byte(fmt.Sprint(key, r)))
							if err != nil {
								return err
							}
							for i, got := range all {
								if want := fmt.Sprint(key, members[i]); string(got) != want {
									return fmt.Errorf("place %d: %q, want %q", i, got, want)
								}
							}
						}
						return nil
					})
				}
				require.NoError(t, g.Wait())
			})
		})
	}
}

func TestExchangesWithDifferentKeysAreIndependent(t *testing.T) {
	c := joinAll(t, newServer(t, 2, Hooks{}), overPipe, nil)
	ctx := watchdog(t)
	var g errgroup.Group
	order := [][]string{{"a", "b"}, {"b", "a"}}
	for r := range c {
		first := make(chan struct{})
		g.Go(func() error {
			defer close(first)
			_, err := c[r].Exchange(ctx, order[r][0], ranks(2), nil)
			return err
		})
		g.Go(func() error {
			_, err := c[r].Exchange(ctx, order[r][1], ranks(2), nil)
			return err
		})
	}
	require.NoError(t, g.Wait())
}

func TestDisjointGroupsMayUseOneKey(t *testing.T) {
	c := joinAll(t, newServer(t, 4, Hooks{}), overPipe, nil)
	var g errgroup.Group
	for r := range c {
		g.Go(func() error {
			low := r / 2 * 2
			all, err := c[r].Exchange(watchdog(t), "split", []int{low, low + 1}, []byte{byte(r)})
			if err == nil && (all[0][0] != byte(low) || all[1][0] != byte(low+1)) {
				err = fmt.Errorf("rank %d got %v", r, all)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
}

func TestExchangeWithDifferentMembersIsAMismatchForAll(t *testing.T) {
	c := joinAll(t, newServer(t, 3, Hooks{}), overPipe, nil)
	errs := make(chan error, 2)
	go func() {
		_, err := c[0].Exchange(watchdog(t), "k", []int{0, 1}, nil)
		errs <- err
	}()
	go func() {
		_, err := c[1].Exchange(watchdog(t), "k", []int{0, 1, 2}, nil)
		errs <- err
	}()
	require.ErrorIs(t, receive(t, errs), ErrMismatch)
	require.ErrorIs(t, receive(t, errs), ErrMismatch)
}

func TestExchangeFailsWhenAMemberDies(t *testing.T) {
	eachTransport(t, func(t *testing.T, via connect) {
		s := newServer(t, 3, Hooks{})
		c := joinAll(t, s, via, nil)
		errs := make(chan error, 2)
		for r := range 2 {
			go func() {
				_, err := c[r].Exchange(watchdog(t), "k", ranks(3), []byte("x"))
				errs <- err
			}()
		}
		s.RankDied(2, "SIGSEGV")
		for range 2 {
			var gone *PeerDeadError
			require.ErrorAs(t, receive(t, errs), &gone)
			require.Equal(t, PeerDeadError{Rank: 2, Cause: "SIGSEGV"}, *gone)
		}
		all, err := exchangeBoth(t, c[0], c[1])
		require.NoError(t, err, "those who live go on")
		require.Len(t, all, 2)
	})
}

func exchangeBoth(t *testing.T, a, b *Client) ([][]byte, error) {
	done := make(chan error, 1)
	members := []int{a.Rank(), b.Rank()}
	go func() {
		_, err := b.Exchange(watchdog(t), "both", members, nil)
		done <- err
	}()
	all, err := a.Exchange(watchdog(t), "both", members, nil)
	return all, errors.Join(err, receive(t, done))
}

func TestExchangeFailsWhenAMemberHasLeft(t *testing.T) {
	c := joinAll(t, newServer(t, 2, Hooks{}), overPipe, nil)
	require.NoError(t, c[1].Close(watchdog(t)))
	_, err := c[0].Exchange(watchdog(t), "k", ranks(2), nil)
	var gone *PeerDeadError
	require.ErrorAs(t, err, &gone)
	require.True(t, gone.Left)
	require.Equal(t, 1, gone.Rank)
}

func TestCancelledExchangeIsAbandonedHereOnly(t *testing.T) {
	c := joinAll(t, newServer(t, 2, Hooks{}), overPipe, nil)
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error, 1)
	go func() {
		_, err := c[0].Exchange(ctx, "k", ranks(2), []byte("zero"))
		errs <- err
	}()
	_, err := c[0].Call(watchdog(t), 1, "after", nil) // the exchange's message is on its way or there
	require.Error(t, err)
	cancel()
	require.ErrorIs(t, receive(t, errs), context.Canceled)
	all, err := c[1].Exchange(watchdog(t), "k", ranks(2), []byte("one"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("zero"), []byte("one")}, all)
}

func TestImpossibleArgumentsAreRefusedAtOnce(t *testing.T) {
	c := joinAll(t, newServer(t, 2, Hooks{}), overPipe, nil)[0]
	for _, members := range [][]int{nil, {1}, {0, 0}, {0, 2}, {-1, 0}} {
		_, err := c.Exchange(watchdog(t), "k", members, nil)
		require.ErrorIs(t, err, ErrArgument, "%v", members)
	}
	_, err := c.Call(watchdog(t), 2, "s", nil)
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorIs(t, c.Tell(-1, "s", nil), ErrArgument)
	require.ErrorIs(t, c.Report("big", make([]byte, MaxMessage)), ErrTooLarge)
}

func TestCallCarriesAnswersAndErrors(t *testing.T) {
	eachTransport(t, func(t *testing.T, via connect) {
		c := joinAll(t, newServer(t, 2, Hooks{}), via, func(rank int) Events {
			return Events{Call: func(_ context.Context, from int, service string, payload []byte) ([]byte, error) {
				if service == "fail" {
					return nil, errors.New("no such window")
				}
				return fmt.Appendf(nil, "%d<-%d %s %s", rank, from, service, payload), nil
			}}
		})
		got, err := c[0].Call(watchdog(t), 1, "echo", []byte("hi"))
		require.NoError(t, err)
		require.Equal(t, "1<-0 echo hi", string(got))
		got, err = c[0].Call(watchdog(t), 0, "self", nil)
		require.NoError(t, err)
		require.Equal(t, "0<-0 self ", string(got))
		_, err = c[1].Call(watchdog(t), 0, "fail", nil)
		var remote *RemoteError
		require.ErrorAs(t, err, &remote)
		require.Equal(t, RemoteError{Rank: 0, Service: "fail", Message: "no such window"}, *remote)
	})
}

func TestCallToARankThatDiesEnds(t *testing.T) {
	s := newServer(t, 2, Hooks{})
	arrived := make(chan struct{})
	c := joinAll(t, s, overPipe, func(int) Events {
		return Events{Call: func(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
			close(arrived)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	})
	errs := make(chan error, 1)
	go func() {
		_, err := c[0].Call(watchdog(t), 1, "hang", nil)
		errs <- err
	}()
	receive(t, arrived)
	s.RankDied(1, "exited with code 3")
	var gone *PeerDeadError
	require.ErrorAs(t, receive(t, errs), &gone)
	_, err := c[0].Call(watchdog(t), 1, "again", nil)
	require.ErrorAs(t, err, &gone)
	require.ErrorAs(t, c[0].Tell(1, "again", nil), &gone)
}

func TestCallWaitsForARankThatJoinsLater(t *testing.T) {
	s := newServer(t, 2, Hooks{})
	early, err := NewClient(watchdog(t), overPipe(t, s), testSecret, 0, Events{})
	require.NoError(t, err)
	defer early.Close(watchdog(t))
	answer := make(chan []byte, 1)
	go func() {
		got, _ := early.Call(watchdog(t), 1, "who", nil)
		answer <- got
	}()
	late, err := NewClient(watchdog(t), overPipe(t, s), testSecret, 1, Events{
		Call: func(context.Context, int, string, []byte) ([]byte, error) { return []byte("late"), nil },
	})
	require.NoError(t, err)
	defer late.Close(watchdog(t))
	require.Equal(t, "late", string(receive(t, answer)))
}

func TestManyCallsEachWayDoNotDeadlock(t *testing.T) {
	eachTransport(t, func(t *testing.T, via connect) {
		const n, each = 8, 200
		var c []*Client
		ready := make(chan struct{})
		c = joinAll(t, newServer(t, n, Hooks{}), via, func(rank int) Events {
			return Events{Call: func(ctx context.Context, from int, service string, payload []byte) ([]byte, error) {
				<-ready
				if service == "nested" { // a handler that calls back
					return c[rank].Call(ctx, from, "leaf", payload)
				}
				return payload, nil
			}}
		})
		close(ready)
		payload := bytes.Repeat([]byte("p"), 20_000)
		var g errgroup.Group
		for r := range n {
			for i := range each {
				g.Go(func() error {
					got, err := c[r].Call(watchdog(t), (r+i)%n, "nested", payload)
					if err == nil && !bytes.Equal(got, payload) {
						err = errors.New("wrong answer")
					}
					return err
				})
			}
		}
		require.NoError(t, g.Wait())
	})
}

func TestTellsOfOneSenderStayInOrder(t *testing.T) {
	eachTransport(t, func(t *testing.T, via connect) {
		const n, each = 4, 500
		type told struct{ from, number int }
		got := make(chan told, n*each)
		c := joinAll(t, newServer(t, n, Hooks{}), via, func(rank int) Events {
			if rank != 0 {
				return Events{}
			}
			return Events{Tell: func(from int, _ string, p []byte) { got <- told{from, int(p[0])<<8 | int(p[1])} }}
		})
		var g errgroup.Group
		for _, sender := range c {
			g.Go(func() error {
				for i := range each {
					if err := sender.Tell(0, "n", []byte{byte(i >> 8), byte(i)}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		next := make([]int, n)
		for range n * each {
			m := receive(t, got)
			require.Equal(t, next[m.from], m.number)
			next[m.from]++
		}
	})
}

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

func TestNewsReachThoseWhoJoinLater(t *testing.T) {
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

func TestCloseIsAGoodbyeAndNoDeath(t *testing.T) {
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

func TestLossWithoutGoodbyeIsDeathWhereNobodyWatchesProcesses(t *testing.T) {
	dead := make(chan int, 1)
	c := joinAll(t, newServer(t, 2, Hooks{}), overPipe, func(int) Events {
		return Events{Dead: func(rank int, _ string) { dead <- rank }}
	})
	c[1].conn.Close()
	require.Equal(t, 1, receive(t, dead))
}

func TestLossIsReportedWhereALauncherWatches(t *testing.T) {
	lost := make(chan int, 1)
	s := newServer(t, 2, Hooks{Lost: func(rank int, _ error) { lost <- rank }})
	c := joinAll(t, s, overTCP, nil)
	c[1].conn.Close()
	require.Equal(t, 1, receive(t, lost))
	require.Equal(t, joined, func() state { s.mu.Lock(); defer s.mu.Unlock(); return s.members[1].state }())
}
