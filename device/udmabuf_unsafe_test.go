//go:build linux

package device_test

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// udmabuf makes a dma-buf of a memfd's pages (linux/udmabuf.h). It needs a kernel with that driver, as Debian's from 6.12 on.
func udmabuf(t *testing.T, fd *memory.Memfd) *os.File {
	driver, err := os.OpenFile("/dev/udmabuf", os.O_RDWR, 0)
	if err != nil && os.Getenv("GOPGAS_UDMABUF_REQUIRED") != "1" {
		t.Skipf("this kernel makes no dma-bufs of memfds: %v", err)
	}
	require.NoError(t, err)
	defer driver.Close()
	create := struct {
		memfd, flags uint32
		offset, size uint64
	}{uint32(fd.FD()), 1, 0, uint64(fd.Size())} // close-on-exec
	const request = 1<<30 | unsafe.Sizeof(create)<<16 | 'u'<<8 | 0x42
	buf, _, errno := unix.Syscall(unix.SYS_IOCTL, driver.Fd(), request, uintptr(unsafe.Pointer(&create)))
	require.Zero(t, errno, "%v", errno)
	return os.NewFile(buf, "dma-buf")
}

// A dma-buf is mapped by its descriptor, here and in the process that receives it: its memory is the memfd's.
func TestDMABufIsMappedByItsDescriptor(t *testing.T) {
	fd, err := memory.NewMemfd("udmabuf", 2*4096)
	require.NoError(t, err)
	require.NoError(t, fd.Commit(0, fd.Size()))
	file := udmabuf(t, fd)
	m, err := device.OpenDescriptor(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.Equal(t, device.DMABuf, m.About().Kind)
	require.Equal(t, 2*4096, m.About().Size)
	a, b := sockets(t)
	require.NoError(t, m.Send(t.Context(), a))
	got, err := device.Receive(testwatch.Context(t), b)
	require.NoError(t, err)
	require.Equal(t, device.DMABuf, got.About().Kind)
	p, err := got.Take(4096, 4096)
	require.NoError(t, err)
	p.Bytes()[5] = 77
	require.EqualValues(t, 77, fd.Bytes()[4096+5])
	require.NoError(t, p.Free())
	require.NoError(t, got.Close())
	require.NoError(t, m.Close())
	require.NoError(t, fd.Close())
}
