package bootstrap

import (
	"errors"
	"net"
	"time"
)

// acceptPause is the time between two tries to take a connection.
const acceptPause = 20 * time.Millisecond

// AcceptAll hands take each connection of l, and returns when l is closed. If this process cannot take one,
// it calls crowded and tries again: most likely the process is out of descriptors, and clients wait in
// the listener's backlog.
func AcceptAll(l net.Listener, take func(net.Conn), crowded func(error)) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			take(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			crowded(err)
			time.Sleep(acceptPause)
		}
	}
}
