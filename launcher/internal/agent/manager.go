//go:build linux

package agent

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/pmi"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// managerFD is the descriptor of a rank's connection with the process manager.
const managerFD = 3

// Manage gives the rank a connection with the process manager, over which programs of MPI
// start, and returns the manager's end. A rank that speaks no PMI leaves its end alone.
func (f *Files) Manage() (net.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connection for PMI: %w", err)
	}
	f.Manager = os.NewFile(uintptr(pair[0]), "PMI of a rank")
	f.Owned = append(f.Owned, f.Manager)
	file := os.NewFile(uintptr(pair[1]), "PMI")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("connection for PMI: %w", err)
	}
	f.manager, _ = conn.(*net.UnixConn) // as the pair is
	return conn, nil
}

// ended ends the connection with the process manager behind the bytes that the rank has sent.
// A child of the rank may still have the rank's end.
func (f *Files) ended() {
	if f.manager != nil {
		f.manager.CloseRead() //nolint:errcheck // the manager may have closed it
	}
}

// managerVars returns an environment with the variables of the process manager.
func (a *Agent) managerVars(env []string, rank int) []string {
	return append(env, fmt.Sprintf("%s=%d", pmi.EnvFD, managerFD), fmt.Sprintf("%s=%d", pmi.EnvRank, rank),
		fmt.Sprintf("%s=%d", pmi.EnvSize, a.plan.Size))
}

// relayManager passes the connection of a rank on to the process manager, which is in grun.
// It opens a stream when the rank sends its first byte.
func (s *server) relayManager(rank int, conn net.Conn) {
	defer conn.Close()
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil {
		return
	}
	stream, err := s.session.Open(wire.Message{Kind: wire.KindManager, Rank: rank})
	if err != nil {
		return
	}
	if _, err := stream.Write(first[:]); err == nil {
		passOn(conn, stream)
	}
	stream.Close() //nolint:errcheck // both directions have ended
}

// passOn passes bytes on between a connection of a rank and its stream until both end.
func passOn(conn net.Conn, stream *wire.Stream) {
	go func() {
		io.Copy(onlyWriter{stream}, conn) //nolint:errcheck // any end will do
		stream.CloseWrite()               //nolint:errcheck // as above
	}()
	io.Copy(conn, stream) //nolint:errcheck // as above
}
