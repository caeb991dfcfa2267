package tcp

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
)

// A queue pair that connects keeps a descriptor until its connection is established, at
// both ends. So a shortage of descriptors is an error of Modify, at once and at the end
// without descriptors. Else a listening socket would leave connections in its queue
// without an error, and the peer would wait in vain.

// keepSpare opens a descriptor that stands for nothing. It is never 0.
func (d *device) keepSpare() (int, error) {
	fd, err := unix.FcntlInt(uintptr(d.listener), unix.F_DUPFD_CLOEXEC, 3)
	return fd, memory.Descriptors(err)
}

// giveSpare closes the spare descriptor, and reports whether there was one.
func (d *dialer) giveSpare() bool {
	if d.spare == 0 {
		return false
	}
	unix.Close(d.spare) //nolint:errcheck // nothing was written
	d.spare = 0
	return true
}

// makeRoom closes a spare descriptor for a connection that waits to be accepted, and
// reports whether it did. Precondition: the token is held.
func (d *device) makeRoom() bool {
	waiting := []unix.PollFd{{Fd: int32(d.listener), Events: unix.POLLIN}}
	if n, err := unix.Poll(waiting, 0); err != nil || n == 0 {
		return false
	}
	for _, q := range d.queuePairs() {
		q.lock()
		gave := q.dialing.giveSpare()
		q.unlock()
		if gave {
			return true
		}
	}
	return false
}

// exhausted reports whether err is a shortage of descriptors.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}
