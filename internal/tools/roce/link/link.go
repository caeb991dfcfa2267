//go:build linux

// Package link reads and writes whole Ethernet frames at a network interface.
//
//	interface <-> packet socket (AF_PACKET) <-> Link, in the netpoller
//
// It needs the capability CAP_NET_RAW. The kernel handles each frame as it would without a
// Link, too.
package link

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// buffer is the size in bytes of the kernel's queue of frames that no Read has taken.
const buffer = 8 << 20

// A Link reads and writes at one interface.
type Link struct {
	file *os.File
	mac  net.HardwareAddr
}

// Open opens an interface. Read returns frames that arrive, and with both frames that leave,
// too. The error is that of the kernel, and says how to get the right to open it.
func Open(name string, both bool) (*Link, error) {
	at, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w; `ip link` lists those of this host", name, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a packet socket: %w; run this as root, or with CAP_NET_RAW", err)
	}
	if err := prepare(fd, at, both); err != nil {
		unix.Close(fd) //nolint:errcheck // the first error says more
		return nil, fmt.Errorf("a packet socket at %s: %w", name, err)
	}
	return &Link{os.NewFile(uintptr(fd), name), at.HardwareAddr}, nil
}

// prepare binds the socket, which then begins to receive. On loopback each frame that
// leaves also arrives, so that the arriving ones are all.
func prepare(fd int, at *net.Interface, both bool) error {
	if !both || at.Flags&net.FlagLoopback != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
			return err
		}
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer) //nolint:errcheck // the default size serves, too
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: at.Index})
}

// MAC returns the interface's address.
func (l *Link) MAC() net.HardwareAddr { return l.mac }

// Read waits for a frame and copies it to b. A frame that is longer than b is cut. After
// Close, Read returns os.ErrClosed.
func (l *Link) Read(b []byte) (int, error) { return l.file.Read(b) }

// Write sends a frame. It returns when the kernel has the frame.
func (l *Link) Write(frame []byte) (int, error) { return l.file.Write(frame) }

// Interrupt ends a Read that waits, and all later ones, with os.ErrDeadlineExceeded.
func (l *Link) Interrupt() error { return l.file.SetReadDeadline(time.Unix(1, 0)) }

// Close ends a Read that waits.
func (l *Link) Close() error { return l.file.Close() }

// Dropped returns the number of frames since the last call for which the kernel's queue had
// no room.
func (l *Link) Dropped() (n uint32, err error) {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := conn.Control(func(fd uintptr) {
		var stats *unix.TpacketStats
		if stats, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			n = stats.Drops
		}
	})
	if failed != nil {
		err = failed
	}
	return n, err
}
