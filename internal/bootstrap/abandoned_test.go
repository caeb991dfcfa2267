package bootstrap

import (
	"context"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnExchangeThatFailsAtAllMembersIsNotAbandoned: this rank knows that the other
// members fail.
func TestAnExchangeThatFailsAtAllMembersIsNotAbandoned(t *testing.T) {
	s := newServer(t, 3, Hooks{})
	c := joinAll(t, s, overPipe, nil)
	var abandoned *AbandonedError
	errs := make(chan error, 1)
	go func() {
		_, err := c[0].Exchange(context.Background(), "dead", ranks(3), nil)
		errs <- err
	}()
	_, err := c[0].Call(watchdog(t), 1, "after", nil) // the exchange's message is there
	require.Error(t, err)
	s.RankDied(2, "killed")
	err = receive(t, errs)
	var gone *PeerDeadError
	require.ErrorAs(t, err, &gone)
	require.NotErrorAs(t, err, &abandoned)
	_, err = c[0].Exchange(watchdog(t), "argument", []int{1}, nil)
	require.ErrorIs(t, err, ErrArgument)
	require.NotErrorAs(t, err, &abandoned)
}

// TestAnExchangeThatLosesTheLauncherIsAbandoned: the response may have reached the other
// members.
func TestAnExchangeThatLosesTheLauncherIsAbandoned(t *testing.T) {
	s := newServer(t, 2, Hooks{})
	c := joinAll(t, s, overPipe, nil)
	errs := make(chan error, 1)
	go func() {
		_, err := c[0].Exchange(context.Background(), "k", ranks(2), nil)
		errs <- err
	}()
	came := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.exchanges["k"]) > 0
	}
	for ctx := watchdog(t); !came(); goruntime.Gosched() {
		require.NoError(t, ctx.Err())
	}
	require.NoError(t, s.Close())
	var abandoned *AbandonedError
	require.ErrorAs(t, receive(t, errs), &abandoned)
}
