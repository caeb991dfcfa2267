package bootstrap

import (
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// exhausted is a listener of a process that is out of descriptors after one connection.
type exhausted struct {
	first  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *exhausted) Accept() (net.Conn, error) {
	select {
	case conn := <-l.first:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
}

func (l *exhausted) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *exhausted) Addr() net.Addr { return &net.TCPAddr{} }

func TestServerWithoutDescriptorsCutsStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowds := 0
		s := NewServer(1, testSecret, Hooks{Crowded: func(err error) {
			crowds++
			require.ErrorIs(t, err, syscall.EMFILE)
		}})
		l := &exhausted{first: make(chan net.Conn, 1), closed: make(chan struct{})}
		ours, theirs := net.Pipe()
		l.first <- theirs
		start := time.Now()
		served := make(chan error)
		go func() { served <- s.Serve(t.Context(), l) }()
		_, err := ours.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Less(t, time.Since(start), handshakeTimeout)
		require.GreaterOrEqual(t, time.Since(start), enoughToProve, "a rank may be slow")
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
		require.Equal(t, 1, crowds, "one word for all tries")
	})
}

func TestAcceptAllTakesConnectionsOnceThereAreDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &exhausted{first: make(chan net.Conn, 1), closed: make(chan struct{})}
		_, theirs := net.Pipe()
		var taken net.Conn
		crowds := 0
		AcceptAll(l, func(conn net.Conn) {
			taken = conn
			require.NoError(t, l.Close())
		}, func(error) {
			if crowds++; crowds == 3 {
				l.first <- theirs
			}
		})
		require.Equal(t, theirs, taken)
		require.Equal(t, 3, crowds)
	})
}

// TestCloseOfEncryptedConnectionDoesNotWait closes a connection whose peer reads nothing.
func TestCloseOfEncryptedConnectionDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		accepted := make(chan net.Conn)
		go func() {
			conn, err := NewServer(1, testSecret, Hooks{}).decrypt(theirs)
			if err != nil {
				t.Error(err)
			}
			accepted <- conn
		}()
		conn, err := encrypt(t.Context(), ours, testSecret)
		require.NoError(t, err)
		peer := <-accepted
		start := time.Now()
		require.NoError(t, conn.Close())
		require.Zero(t, time.Since(start))
		require.NoError(t, peer.Close())
	})
}
