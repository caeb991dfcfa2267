//go:build linux

package tcp

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
)

// A path keeps a descriptor while a queue pair waits for its stream, at both ends. So a
// shortage of descriptors is an error of Modify, at once and at the end
// without descriptors. Else a listening socket would leave connections in its queue
// without an error, and the peer would wait in vain.

// keepSpare opens a descriptor that stands for nothing, unless p has one or room in a
// connection.
func (p *path) keepSpare(q *qp) error {
	if p.spare != 0 || p.room(q) != nil {
		return nil
	}
	fd, err := unix.FcntlInt(uintptr(p.dev.listener), unix.F_DUPFD_CLOEXEC, 3)
	if exhausted(err) && p.dev.cutStranger() {
		fd, err = unix.FcntlInt(uintptr(p.dev.listener), unix.F_DUPFD_CLOEXEC, 3)
	}
	if err == nil {
		p.spare = fd
	}
	return memory.Descriptors(err)
}

// giveSpare closes the spare descriptor, and reports whether there was one.
func (p *path) giveSpare() bool {
	if p.spare == 0 {
		return false
	}
	unix.Close(p.spare) //nolint:errcheck // nothing was written
	p.spare = 0
	return true
}

// makeRoom closes a spare descriptor for a connection that waits to be accepted, and
// reports whether it did. Precondition: the token is held.
func (d *device) makeRoom() bool {
	for _, p := range d.paths {
		if p.giveSpare() {
			return true
		}
	}
	return false
}

// exhausted reports whether err is a shortage of descriptors.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}
