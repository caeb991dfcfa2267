//go:build linux

package memory

import (
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// passMark is the byte that carries a descriptor over a Unix socket.
const passMark = 'd'

// SendDescriptor hands descriptor fd to the process at the other end of a connection, by SCM_RIGHTS. This
// process keeps its own.
func SendDescriptor(conn *net.UnixConn, fd int) error {
	_, _, err := conn.WriteMsgUnix([]byte{passMark}, unix.UnixRights(fd), nil)
	return err
}

// ReceiveDescriptor returns a descriptor that SendDescriptor sent. The caller closes it. It returns
// ErrNoDescriptor if the peer closed the connection first, or sent something else. It returns a
// *DescriptorError if this process has no descriptor left for it.
func ReceiveDescriptor(conn *net.UnixConn) (int, error) {
	var data [1]byte
	oob := make([]byte, unix.CmsgSpace(2*4)) // room for a second one, which is refused
	n, oobn, flags, _, err := conn.ReadMsgUnix(data[:], oob)
	if errors.Is(err, unix.ECONNRESET) || errors.Is(err, io.EOF) || err == nil && n == 0 {
		return -1, fmt.Errorf("%w: the sender closed the connection", ErrNoDescriptor)
	}
	if err != nil {
		return -1, err
	}
	fds := descriptorsIn(oob[:oobn])
	switch {
	case len(fds) == 1 && data[0] == passMark && flags&unix.MSG_CTRUNC == 0:
		return fds[0], nil
	case len(fds) == 0 && flags&unix.MSG_CTRUNC != 0:
		return -1, Descriptors(unix.EMFILE) // the kernel drops what it cannot install
	}
	for _, fd := range fds {
		closeFD(fd)
	}
	return -1, fmt.Errorf("%w: the sender sent %d, and byte %#x", ErrNoDescriptor, len(fds), data[0])
}

// descriptorsIn returns the descriptors of a control message. It ignores all others.
func descriptorsIn(oob []byte) (fds []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err == nil {
			fds = append(fds, more...)
		}
	}
	return fds
}

// Magic numbers of file systems, as statfs returns them.
const (
	magicDMABuf = 0x444d4142
	magicHuge   = 0x958458f6
)

// OpenDescriptor maps all memory of a descriptor, which it takes over: a memfd that is sealed against
// resizing, device-dax, a PCI device's memory, or a dma-buf. It has the pages of a memfd be present, so
// that no access fails for want of memory. It refuses any other descriptor (ErrUnsealed), and a
// dma-buf whose exporter does not let CPUs map it (ErrUnmappable). The mapping stays until [CloseDevice].
func OpenDescriptor(fd int) (driver.Memory, error) {
	size, kind, err := describe(fd)
	var mem []byte
	if err == nil && size <= 0 {
		err = fmt.Errorf("%w: %d bytes", ErrTooSmall, size)
	}
	if err == nil {
		mem, err = mapShared(fd, size)
		if err != nil && kind == driver.KindDMABuf {
			err = fmt.Errorf("%w: %w", ErrUnmappable, err)
		}
	}
	if err == nil && (kind == driver.KindMemfd || kind == driver.KindHuge) {
		if err = again(func() error { return unix.Fallocate(fd, 0, 0, size) }); err != nil {
			err = errors.Join(noRoom(err), overlay(mem))
		}
	}
	if err != nil {
		closeFD(fd)
		return driver.Memory{}, fmt.Errorf("memory: %v of a descriptor: %w", kind, err)
	}
	return driver.Memory{Kind: kind, Bytes: mem, FD: fd}, nil
}

// describe returns size and kind of a descriptor's memory.
func describe(fd int) (size int64, kind driver.Kind, err error) {
	var on unix.Statfs_t
	if err := unix.Fstatfs(fd, &on); err != nil {
		return 0, 0, err
	}
	if uint32(on.Type) == magicDMABuf {
		size, err = unix.Seek(fd, 0, io.SeekEnd)
		return size, driver.KindDMABuf, err
	}
	if unsealed := sealed(fd); unsealed != nil {
		size, kind, err = deviceOf(fd)
		if err != nil {
			err = errors.Join(unsealed, err)
		}
		return size, kind, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, err
	}
	if uint32(on.Type) == magicHuge {
		return st.Size, driver.KindHuge, nil
	}
	return st.Size, driver.KindMemfd, nil
}

// noRoom turns an error for want of pages into ErrNoMemory.
func noRoom(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	return err
}

// Duplicate returns another descriptor of fd's file.
func Duplicate(fd int) (int, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return dup, Descriptors(err)
}
