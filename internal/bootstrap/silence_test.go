package bootstrap

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/silence"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// mute is a connection to a far end that is stopped while it is silent: it takes
// sent bytes into its buffer, and says nothing.
type mute struct {
	net.Conn
	silent atomic.Bool
}

func (m *mute) Read(b []byte) (int, error) {
	for {
		n, err := m.Conn.Read(b)
		if err != nil || !m.silent.Load() {
			return n, err
		}
	}
}

func (m *mute) Write(b []byte) (int, error) {
	if m.silent.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// muted joins rank 0 of a job of two. The test controls its clock: the client
// looks when the test calls look.
func muted(t *testing.T, ev Events) (*Client, *mute) {
	conn := &mute{Conn: overPipe(t, newServer(t, 2, Hooks{}))}
	ev.Silence = time.Hour
	c, err := NewClient(watchdog(t), conn, testSecret, 0, ev)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.end(ErrClosed)
		c.io.Wait()
	})
	return c, conn
}

func TestLostIsNotCalledWhileTheRendezvousResponds(t *testing.T) {
	c, _ := muted(t, Events{Lost: func(err error) { t.Error(err) }})
	for range 10 * silence.Looks {
		c.silence.Look()
		require.Eventually(t, c.silence.Heard, testwatch.Patience(), time.Millisecond, "no response to a ping")
	}
	require.NoError(t, c.ctx.Err())
}

func TestEveryWaitEndsWhenTheRendezvousDoesNotRespond(t *testing.T) {
	lost := make(chan error, 1)
	c, conn := muted(t, Events{Lost: func(err error) { lost <- err }})
	conn.silent.Store(true)
	errs := make(chan error, 3)
	go func() { _, err := c.Exchange(context.Background(), "k", ranks(2), nil); errs <- err }()
	go func() { _, err := c.Call(context.Background(), 1, "s", nil); errs <- err }()
	go func() { errs <- c.Close(context.Background()) }()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.exchanges) == 1 && len(c.calls) == 1
	}, testwatch.Patience(), time.Millisecond)
	for range silence.Looks { // the start counted as a response
		c.silence.Look()
	}
	require.NoError(t, c.ctx.Err(), "lost too early")
	c.silence.Look()
	for range cap(errs) {
		err := receive(t, errs)
		require.ErrorIs(t, err, ErrSilent)
		require.ErrorIs(t, err, ErrLost)
		require.ErrorContains(t, err, "raise GRUN_PEER_TIMEOUT")
	}
	require.ErrorIs(t, receive(t, lost), ErrSilent)
}

func TestEachResponseRestartsTheSilence(t *testing.T) {
	c, conn := muted(t, Events{})
	for range 3 {
		conn.silent.Store(true)
		for range silence.Looks - 1 {
			c.silence.Look()
		}
		conn.silent.Store(false)
		c.post(message{kind: kindPing}) //nolint:errcheck // seen below
		require.Eventually(t, c.silence.Heard, testwatch.Patience(), time.Millisecond)
		c.silence.Look()
	}
	require.NoError(t, c.ctx.Err())
}

func TestSilencesAreBounded(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: DefaultSilence, time.Millisecond: silence.Least, time.Minute: time.Minute} {
		c, err := NewClient(watchdog(t), overPipe(t, newServer(t, 1, Hooks{})), testSecret, 0, Events{Silence: asked})
		require.NoError(t, err)
		require.Equal(t, want, c.silence.Bound())
		require.NoError(t, c.Close(watchdog(t)))
	}
}
