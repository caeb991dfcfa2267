package device

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Send hands the memory's descriptor to the process at the other end of a Unix socket of this host, by
// SCM_RIGHTS. That process calls [Receive], and both then have all of the memory: they agree on ranges, see
// [Memory.Take]. This process keeps its mapping, and may close it at once. If ctx ends first, Send returns its
// cause, and the connection is of no use any more. Memory of [Wrap] without a descriptor is [ErrNoDescriptor]. Kind: local.
func (m *Memory) Send(ctx context.Context, conn *net.UnixConn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return m.fail("Send", ErrClosed)
	case m.about.Kind == driver.KindHeap:
		return m.fail("Send", fmt.Errorf("%w: the heap has none", ErrNoDescriptor))
	}
	return m.fail("Send", until(ctx, conn, func() error { return memory.SendDescriptor(conn, m.all.FD) }))
}

// Receive maps the memory whose descriptor the process at the other end sends by [Memory.Send]. It examines
// the descriptor itself and takes no word of the sender for it, as [OpenDescriptor] does. It returns
// [ErrNoDescriptor] if the sender ended first. If ctx ends first, Receive returns its cause, and the
// connection is of no use any more. Kind: local.
func Receive(ctx context.Context, conn *net.UnixConn) (*Memory, error) {
	fd := -1
	err := until(ctx, conn, func() (err error) { fd, err = memory.ReceiveDescriptor(conn); return err })
	if err != nil {
		return nil, fmt.Errorf("device: Receive: %w", err)
	}
	return openDescriptor(fd)
}

// OpenDescriptor maps the memory of a file that another package or process has opened: a memfd that
// is sealed against resizing, device-dax, a PCI device's memory, or a dma-buf. The file stays the
// caller's. Any other file is an error, since an access to its memory could end this process; a
// dma-buf that CPUs cannot map is [ErrUnmappable]. Kind: local.
func OpenDescriptor(file *os.File) (*Memory, error) {
	raw, err := file.SyscallConn()
	fd := -1
	if err == nil {
		if e := raw.Control(func(p uintptr) { fd, err = memory.Duplicate(int(p)) }); e != nil {
			err = e
		}
	}
	if err != nil {
		return nil, fmt.Errorf("device: OpenDescriptor of %s: %w", file.Name(), err)
	}
	return openDescriptor(fd)
}

// openDescriptor maps the memory of a descriptor.
func openDescriptor(fd int) (*Memory, error) {
	all, err := memory.OpenDescriptor(fd)
	if err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	return Wrap(all, About{Kind: all.Kind, Node: -1, Align: page}, func() error { return memory.CloseDevice(all) }), nil
}

// until does I/O on a connection, and ends it when ctx ends.
func until(ctx context.Context, conn *net.UnixConn, io func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // a closed one needs none
	err := io()
	if !stop() && err != nil {
		return context.Cause(ctx)
	}
	return err
}
