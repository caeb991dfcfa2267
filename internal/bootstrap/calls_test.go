package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestCallCarriesResponsesAndErrors(t *testing.T) {
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
	response := make(chan []byte, 1)
	go func() {
		got, _ := early.Call(watchdog(t), 1, "who", nil)
		response <- got
	}()
	late, err := NewClient(watchdog(t), overPipe(t, s), testSecret, 1, Events{
		Call: func(context.Context, int, string, []byte) ([]byte, error) { return []byte("late"), nil },
	})
	require.NoError(t, err)
	defer late.Close(watchdog(t))
	require.Equal(t, "late", string(receive(t, response)))
}

func TestManyCallsEachWayDoNotDeadlock(t *testing.T) {
	eachTransport(t, func(t *testing.T, via connect) {
		const n = 8
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
			for i := range testwatch.Rounds(200) {
				g.Go(func() error {
					got, err := c[r].Call(watchdog(t), (r+i)%n, "nested", payload)
					if err == nil && !bytes.Equal(got, payload) {
						err = errors.New("wrong response")
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
