package bootstrap

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/identity"
)

// dialBy dials a rendezvous and joins, with or without TLS.
func dialBy(t *testing.T, addr string, secret []byte, rank int, secure bool, ev Events) (*Client, error) {
	t.Helper()
	c, err := Join(watchdog(t), addr, secret, Joining{Rank: rank, TLS: secure})
	if err != nil {
		return nil, err
	}
	return c.Client(ev), nil
}

// relay forwards one connection to addr. The function change sees each piece of the client's bytes
// behind the join. It returns the bytes to forward and whether to go on.
func relay(t *testing.T, addr string, joined *atomic.Bool, change func([]byte) ([]byte, bool)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	go func() {
		defer close(done)
		from, err := l.Accept()
		if err != nil {
			return
		}
		defer from.Close()
		to, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			io.Copy(from, to) //nolint:errcheck // ends with the connection
			from.Close()
		}()
		b := make([]byte, 64<<10)
		for more := true; more; {
			n, err := from.Read(b)
			out := b[:n]
			if more = err == nil; more && joined.Load() {
				out, more = change(out)
			}
			if _, err := to.Write(out); err != nil {
				break
			}
		}
		to.Close()
		<-back
	}()
	return l.Addr().String()
}

func TestTLSClientsExchange(t *testing.T) {
	s := newServer(t, 2, Hooks{})
	addr := listen(t, s)
	var mu sync.Mutex
	var sent []byte
	joined := new(atomic.Bool)
	joined.Store(true)
	secretly := relay(t, addr, joined, func(b []byte) ([]byte, bool) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, b...)
		return b, true
	})
	results := make(chan error, 2)
	for rank, to := range []string{addr, secretly} {
		go func() {
			c, err := dialBy(t, to, testSecret, rank, true, Events{})
			if err == nil {
				var parts [][]byte
				parts, err = c.Exchange(watchdog(t), "key", ranks(2), []byte("no stranger reads this"))
				if err == nil && string(parts[1-rank]) != "no stranger reads this" {
					err = errors.New("other bytes")
				}
				err = errors.Join(err, c.Close(watchdog(t)))
			}
			results <- err
		}()
	}
	require.NoError(t, receive(t, results))
	require.NoError(t, receive(t, results))
	mu.Lock()
	defer mu.Unlock()
	require.Greater(t, len(sent), 100)
	require.NotContains(t, string(sent), "reads this", "plaintext crossed the network")
}

func TestTLSRefusesAnotherSecret(t *testing.T) {
	addr := listen(t, NewServer(2, testSecret, Hooks{Joined: func(int) { t.Error("a stranger joined") }}))
	_, err := dialBy(t, addr, bytes.Repeat([]byte{8}, SecretSize), 0, true, Events{})
	require.ErrorIs(t, err, ErrHandshake)
	require.ErrorIs(t, err, identity.ErrStranger)
	require.ErrorContains(t, err, addr)
	require.ErrorContains(t, err, "give all ranks of the job the same one")
}

func TestRanksWithAndWithoutTLSAreRefused(t *testing.T) {
	for _, first := range []bool{true, false} {
		s := newServer(t, 2, Hooks{})
		addr := listen(t, s)
		c, err := dialBy(t, addr, testSecret, 1, first, Events{})
		require.NoError(t, err)
		_, err = dialBy(t, addr, testSecret, 0, !first, Events{})
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 0, refused.Rank)
		require.Contains(t, refused.Reason, "rank 1")
		require.Contains(t, refused.Reason, EnvTLS)
		_, err = NewConn(watchdog(t), overPipe(t, s), testSecret, Joining{Rank: 0, TLS: !first})
		require.ErrorAs(t, err, &refused, "rank 0 in the process of the rendezvous")
		d, err := dialBy(t, addr, testSecret, 0, first, Events{})
		require.NoError(t, err, "the rank may join once it is alike")
		for _, c := range []*Client{c, d} {
			require.NoError(t, c.Close(watchdog(t)))
		}
	}
}

// TestTLSChangedStreamsAreLost changes the bytes of one rank behind its join. The rank
// and the launcher get errors, and another rank goes on.
func TestTLSChangedStreamsAreLost(t *testing.T) {
	for name, change := range map[string]func(b []byte) ([]byte, bool){
		"one bit flipped":  func(b []byte) ([]byte, bool) { b[len(b)/2] ^= 4; return b, true },
		"cut":              func(b []byte) ([]byte, bool) { return b[:len(b)-1], false },
		"a piece repeated": func(b []byte) ([]byte, bool) { return append(bytes.Clone(b), b...), true },
		"garbage behind":   func(b []byte) ([]byte, bool) { return append(bytes.Clone(b), strings.Repeat("x", 100)...), true },
	} {
		t.Run(name, func(t *testing.T) {
			lost := make(chan int, 2)
			s := newServer(t, 2, Hooks{Lost: func(rank int, err error) { lost <- rank }})
			addr := listen(t, s)
			told := make(chan string, 1)
			other, err := dialBy(t, addr, testSecret, 1, true, Events{Tell: func(_ int, _ string, b []byte) { told <- string(b) }})
			require.NoError(t, err)
			joined := new(atomic.Bool)
			gone := make(chan error, 1)
			c, err := dialBy(t, relay(t, addr, joined, change), testSecret, 0, true, Events{Lost: func(err error) { gone <- err }})
			require.NoError(t, err)
			joined.Store(true)
			require.NoError(t, c.Tell(1, "news", []byte("changed on the way")))
			require.Equal(t, 0, receive(t, lost))
			why := receive(t, gone)
			require.ErrorIs(t, why, ErrLost)
			if name != "cut" {
				require.ErrorContains(t, why, "look for what changes")
			}
			require.ErrorIs(t, c.Close(context.Background()), ErrLost)
			require.NoError(t, other.Tell(1, "news", []byte("to itself")))
			for text := range told {
				if text == "to itself" {
					break
				}
				require.Equal(t, "changed on the way", text)
			}
			require.NoError(t, other.Close(watchdog(t)))
		})
	}
}

// TestTLSProofsHoldOnOneConnection relays proofs from one TLS connection to another.
func TestTLSProofsHoldOnOneConnection(t *testing.T) {
	a, b := &session{secret: testSecret}, &session{secret: testSecret}
	for _, s := range []*session{a, b} {
		conn := overTLS(t, newServer(t, 1, Hooks{}))
		defer conn.Close()
		require.NoError(t, s.bind(conn))
	}
	require.NotEqual(t, a.binding, b.binding)
	require.NotEqual(t, a.prove(roleClient, nil), b.prove(roleClient, nil))
	plain := session{secret: testSecret}
	require.NotEqual(t, a.prove(roleClient, nil), plain.prove(roleClient, nil))
}

func TestTLSStrangersAreCut(t *testing.T) {
	s := newServer(t, 1, Hooks{})
	addr := listen(t, s)
	for name, garbage := range map[string]string{
		"no handshake":    "\x16\x03\x01\x00\x04\x09\x00\x00\x00",
		"another version": "\x16\x00\x00\x00\x04\x01\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write([]byte(garbage))
			require.NoError(t, err)
			io.Copy(io.Discard, conn) //nolint:errcheck // any end will do
		})
	}
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Read(make([]byte, 1))
	require.ErrorContains(t, err, "remote error: tls", "no certificate")
	c, err := dialBy(t, addr, testSecret, 0, true, Events{})
	require.NoError(t, err)
	require.NoError(t, c.Close(watchdog(t)))
}
