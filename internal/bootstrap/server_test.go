package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestMessagesForARankThatDoesNotTakeThemOverflow(t *testing.T) {
	s := newServer(t, 2, Hooks{})
	c, err := NewClient(watchdog(t), overTCP(t, s), testSecret, 0, Events{})
	require.NoError(t, err)
	defer c.Close(watchdog(t))
	for range 3 { // rank 1 has not even joined
		require.NoError(t, c.Tell(1, "bulk", make([]byte, queueLimit/2)))
	}
	_, err = c.Call(watchdog(t), 1, "bulk", make([]byte, queueLimit/2))
	require.ErrorIs(t, err, ErrOverflow)
	late, err := NewClient(watchdog(t), overTCP(t, s), testSecret, 1, Events{})
	require.NoError(t, err, "it is not shut out by what waits for it")
	defer late.Close(watchdog(t))
	_, err = exchangeBoth(t, c, late)
	require.NoError(t, err)
}

func TestResultTooLargeForAMessageFailsForAll(t *testing.T) {
	c := joinAll(t, newServer(t, 3, Hooks{}), overTCP, nil)
	errs := make(chan error, 3)
	for r := range c {
		go func() {
			_, err := c[r].Exchange(watchdog(t), "k", ranks(3), bytes.Repeat([]byte{byte(r)}, MaxMessage/3)) // equal parts would travel once
			errs <- err
		}()
	}
	for range c {
		require.ErrorIs(t, receive(t, errs), ErrTooLarge)
	}
}

func TestServerCutsAClientThatBreaksTheProtocolAndServesTheRest(t *testing.T) {
	lost := make(chan int, 4)
	s := newServer(t, 4, Hooks{Lost: func(rank int, _ error) { lost <- rank }})
	c := joinAll(t, s, overTCP, nil)
	for rank, bad := range map[int]message{
		1: {kind: kindTell, rank: 7},
		2: {kind: kindExchange, name: "k", members: []int{0, 9}},
		3: {kind: kindDead, rank: 0},
	} {
		frame, err := bad.frame()
		require.NoError(t, err)
		_, err = c[rank].conn.Write(frame)
		require.NoError(t, err)
		require.Equal(t, rank, receive(t, lost))
	}
	_, err := c[0].Exchange(watchdog(t), "alone", []int{0}, nil)
	require.NoError(t, err)
}

func TestServeEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := newServer(t, 1, Hooks{})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	cancel()
	require.NoError(t, receive(t, served))
	s.Close()
	require.ErrorIs(t, s.Serve(context.Background(), l), ErrClosed)
}

func TestAttachAfterCloseIsCut(t *testing.T) {
	s := NewServer(1, testSecret, Hooks{})
	s.Close()
	ours, theirs := net.Pipe()
	s.Attach(theirs)
	_, err := NewClient(watchdog(t), ours, testSecret, 0, Events{})
	require.Error(t, err)
}

// TestRandomKillsEndEveryWait kills ranks while all of them exchange and
// call: everything ends, with the right bytes or with an error about a rank
// that was killed.
func TestRandomKillsEndEveryWait(t *testing.T) {
	for _, n := range []int{2, 5, 16, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			eachTransport(t, func(t *testing.T, via connect) { killSome(t, n, via) })
		})
	}
}

func killSome(t *testing.T, n int, via connect) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newServer(t, n, Hooks{})
	c := joinAll(t, s, via, func(int) Events {
		return Events{Call: func(_ context.Context, _ int, _ string, p []byte) ([]byte, error) { return p, nil }}
	})
	victims := random.Perm(n)[:1+random.IntN(n/2)]
	killed := make(map[int]bool)
	for _, v := range victims {
		killed[v] = true
	}
	var g errgroup.Group
	var progress sync.WaitGroup
	progress.Add(n)
	for r := range c {
		g.Go(func() error { return work(t, c[r], n, killed, progress.Done) })
	}
	progress.Wait() // all clients are at work
	for _, v := range victims {
		if random.IntN(2) == 0 {
			s.RankDied(v, "killed")
			c[v].end(ErrLost)
		} else {
			c[v].conn.Close()
		}
	}
	require.NoError(t, g.Wait())
}

// work exchanges and calls until that fails because a rank was killed, or
// until this rank is.
func work(t *testing.T, c *Client, n int, killed map[int]bool, started func()) error {
	for round := 0; ; round++ {
		all, err := c.Exchange(watchdog(t), fmt.Sprint(round), ranks(n), []byte{byte(round)})
		if err == nil {
			for _, b := range all {
				if b[0] != byte(round) {
					return fmt.Errorf("round %d: got %v", round, all)
				}
			}
			_, err = c.Call(watchdog(t), (c.Rank()+round)%n, "echo", nil)
		}
		if round == 0 {
			started()
		}
		var gone *PeerDeadError
		switch {
		case err == nil:
		case errors.As(err, &gone) && killed[gone.Rank] && !gone.Left:
			return nil
		case errors.Is(err, ErrLost) && killed[c.Rank()]:
			return nil
		default:
			return fmt.Errorf("rank %d, round %d: %w", c.Rank(), round, err)
		}
	}
}
