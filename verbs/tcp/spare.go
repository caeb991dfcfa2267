package tcp

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
)

// A queue pair that connects keeps a descriptor until its connection stands, at
// whichever end dials. So the want of descriptors is an error of Modify, at once and
// at the end that has none left. Otherwise a listening socket would leave its
// connections in the queue without a word, and the peer would wait in vain.

// keepSpare opens a descriptor that stands for nothing. It is never 0.
func (d *device) keepSpare() (int, error) {
	fd, err := unix.FcntlInt(uintptr(d.listener), unix.F_DUPFD_CLOEXEC, 3)
	return fd, memory.Descriptors(err)
}

// giveSpare closes the descriptor that was kept, and tells whether there was one.
func (d *dialer) giveSpare() bool {
	if d.spare == 0 {
		return false
	}
	unix.Close(d.spare) //nolint:errcheck // nothing was written
	d.spare = 0
	return true
}

// makeRoom gives a spare descriptor up for a connection that waits to be accepted, and
// tells whether it did. Called with the token held.
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

// exhausted tells whether err comes of the want of descriptors.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}
