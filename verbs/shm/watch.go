//go:build linux

package shm

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// death is a descriptor that becomes readable when a process ends; nil for a
// process that cannot be watched.
type death struct{ file *os.File }

// startWatch has a goroutine watch p's process, unless one does. Neighbors without a QP are not watched.
func (c *Context) startWatch(p *peer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.watched || c.closed {
		return nil // QPs of a closed context end anyway
	}
	death, err := openDeath(int(p.id.pid), c.pid)
	if err != nil {
		return err
	}
	if death != nil && !p.there() {
		death.close()
		return fmt.Errorf("%w: process %d has ended", driver.ErrLost, p.id.pid)
	}
	p.watched = true
	if p.death = death; death != nil {
		c.helpers.Go(func() { c.watch(p) })
	}
	return nil
}

// there reports whether the process of p's number has p's control memfd, so that it is no later one.
func (p *peer) there() bool {
	var st unix.Stat_t
	err := unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", p.id.pid, p.id.fd), &st)
	return err == nil && st.Ino == p.id.inode
}

// openDeath opens the descriptor of a peer's process. The caller checks afterward that the process
// has the peer's memory. So the descriptor cannot belong to a later process with the same number. The
// function returns nil for this process itself, and for all processes on kernels before 5.10. There
// the layer above, which learns of deaths, moves QPs to ERR.
func openDeath(pid, self int) (*death, error) {
	if pid == self {
		return nil, nil
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("%w: process %d has ended", driver.ErrLost, pid)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return nil, memory.Descriptors(err)
	case err != nil:
		return nil, nil //nolint:nilerr // see above
	}
	return &death{os.NewFile(uintptr(fd), "pidfd")}, nil
}

// await returns true once the process has ended, false after stop. It waits in
// the netpoller, so it costs no thread.
func (d *death) await() bool {
	defer d.close()
	conn, err := d.file.SyscallConn()
	if err != nil {
		return false
	}
	return conn.Read(readable) == nil
}

// ended reports whether the peer's process has ended, by a look at its descriptor.
func (p *peer) ended() bool {
	if p.death == nil || p.dead.Load() {
		return p.dead.Load()
	}
	conn, err := p.death.file.SyscallConn()
	if err != nil {
		return false // closed: this context ends
	}
	over := false
	_ = conn.Control(func(fd uintptr) { over = readable(fd) })
	return over
}

func (d *death) close() {
	if d != nil {
		_ = d.file.Close() // nothing was written
	}
}

func (d *death) stop() {
	if d != nil {
		_ = d.file.SetReadDeadline(time.Unix(1, 0)) // fails only where await has returned
	}
}

func readable(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// watch breaks the QPs of p when its process ends. Each peer has one such
// goroutine.
func (c *Context) watch(p *peer) {
	if !p.death.await() {
		return
	}
	p.dead.Store(true)
	for i := range c.qps {
		if q := c.qps[i].Load(); q != nil {
			q.lookAfterDeath(p)
		}
	}
	c.ring() // for quiesce
}
