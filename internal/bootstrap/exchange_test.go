package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestExchangeGivesEachMemberAllBytesInMemberOrder(t *testing.T) {
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
		require.NoError(t, err, "ranks that live go on")
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

func TestCanceledExchangeIsAbandonedHereOnly(t *testing.T) {
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
	err = receive(t, errs)
	require.ErrorIs(t, err, context.Canceled)
	var abandoned *AbandonedError
	require.ErrorAs(t, err, &abandoned, "the others may succeed")
	all, err := c[1].Exchange(watchdog(t), "k", ranks(2), []byte("one"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("zero"), []byte("one")}, all)
}

// A contribution is queued, and its sender does not wait for the outcome yet.
// Then the other members may complete the exchange, go on and end this rank's
// context.
func TestAContributionThatIsQueuedCountsThoughItsContextHasEnded(t *testing.T) {
	c := joinAll(t, newServer(t, 2, Hooks{}), overPipe, nil)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	mine := message{kind: kindExchange, name: "k", members: ranks(2), parts: [][]byte{[]byte("zero")}}
	require.NoError(t, c[0].request(over, mine))
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
