//go:build linux

package hosts

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces are those that a host has of its own.
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWNS | unix.CLONE_NEWIPC

// A Host is a set of namespaces on this machine.
type Host struct {
	bed   *Testbed
	name  string
	ports []*port // its interfaces eth0, eth1 and so on

	first *exec.Cmd      // the first process, which keeps the namespaces
	alive io.WriteCloser // its input: the host ends when it is closed
	pidfd int
}

// setup prepares the mounts of a host, and then waits for the end of its input. Its arguments are
// the name, the table of names, and the size of /dev/shm.
const setup = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o size=$3 tmpfs /dev/shm
mount -t tmpfs -o size=256m tmpfs /run
mkdir -p /run/sshd /run/home /run/tmp
mount --bind "$2" /etc/hosts
hostname "$1" 2>/dev/null || echo "$1" >/proc/sys/kernel/hostname
ip link set lo up
echo ready
exec cat >/dev/null`

// DefaultShm is the size of a host's /dev/shm.
const DefaultShm = 512 << 20

// Host starts a host with no network but its loopback.
func (b *Testbed) Host(name string) *Host { return b.HostWithShm(name, DefaultShm) }

// HostWithShm starts a host whose /dev/shm has room for size bytes.
func (b *Testbed) HostWithShm(name string, size int64) *Host {
	b.t.Helper()
	h := &Host{bed: b, name: name, pidfd: -1}
	b.hosts = append(b.hosts, h)
	b.writeNames()
	h.first = exec.Command("/bin/sh", "-c", setup, "sh", name, b.namesFile(), strconv.FormatInt(size, 10))
	h.first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, PidFD: &h.pidfd}
	h.first.Stderr = os.Stderr
	alive, err := h.first.StdinPipe()
	b.must(err, "input of host %s", name)
	ready, err := h.first.StdoutPipe()
	b.must(err, "output of host %s", name)
	if err := h.first.Start(); err != nil {
		unable(b.t, fmt.Errorf("making namespaces: %w", err))
	}
	h.alive = alive
	if line, err := bufio.NewReader(ready).ReadString('\n'); line != "ready\n" {
		unable(b.t, fmt.Errorf("setting up host %s: %q, %w", name, line, err))
	}
	return h
}

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// Addr returns the host's first address of a family, on any of its networks.
func (h *Host) Addr(family Family) netip.Addr {
	for _, p := range h.ports {
		if a := p.addr(family); a.IsValid() {
			return a
		}
	}
	return netip.Addr{}
}

// Do runs f on a thread inside the host. The processes and sockets that f makes belong to
// the host. f's goroutines do not run there.
func (h *Host) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		goruntime.LockOSThread() // for ever: the thread ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			done <- h.inside(f)
			return
		}
		// The main thread does not end with a goroutine. It would stay in the host. While
		// this goroutine holds it, the next one runs on another thread.
		done <- h.Do(f)
		goruntime.UnlockOSThread()
	}()
	return <-done
}

// inside moves this thread, which runs nothing else, into the host and runs f.
func (h *Host) inside(f func() error) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leaving the process's folder: %w", err)
	}
	if err := unix.Setns(h.pidfd, namespaces); err != nil {
		return fmt.Errorf("entering host %s: %w", h.name, err)
	}
	return f()
}

// Listen listens inside the host, at any port of an address.
func (h *Host) Listen(at netip.Addr) (l net.Listener, err error) {
	err = h.Do(func() error {
		l, err = net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
		return err
	})
	return l, err
}

// Dial connects from inside the host.
func (h *Host) Dial(to netip.AddrPort) (conn net.Conn, err error) {
	err = h.Do(func() error {
		conn, err = net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))
		return err
	})
	return conn, err
}

// close ends the host with all its processes. It returns when they are gone.
func (h *Host) close() {
	if h.alive == nil {
		return
	}
	_ = h.alive.Close()
	_ = h.first.Process.Kill() // and the kernel the other processes of the host
	_ = h.first.Wait()
	_ = unix.Close(h.pidfd)
	h.alive = nil
}
