//go:build linux

package device_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

// TestMain lets this program be the sender that is killed, too.
func TestMain(m *testing.M) {
	switch os.Getenv("GOPGAS_TEST_SENDER") {
	case "":
	case "starves":
		receiveWithoutDescriptors()
	default:
		sendAndDie()
	}
	os.Exit(m.Run())
}

// sealed makes memory of n bytes in a memfd that other processes can have.
func sealed(n int) (*device.Memory, error) {
	fd, err := memory.NewMemfd("passed", int64(n))
	if err != nil {
		return nil, err
	}
	return device.Wrap(fd.Memory(0, fd.Size()), device.About{Kind: device.Memfd, Node: -1}, fd.Close), nil
}

// sendAndDie sends memory over descriptor 3, unless it shall not, and kills itself.
func sendAndDie() {
	m, err := sealed(4096)
	if err == nil && os.Getenv("GOPGAS_TEST_SENDER") == "sends" {
		var p *device.Piece
		if p, err = m.Allocate(4096); err == nil {
			copy(p.Bytes(), "passed on")
			err = m.Send(context.Background(), connOf(3))
		}
	}
	if err != nil {
		panic(err)
	}
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// receiveWithoutDescriptors receives in a process that has no descriptor left, and prints the error.
func receiveWithoutDescriptors() {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	a, b := connOf(fds[0]), connOf(fds[1])
	m, err := sealed(4096)
	if err == nil {
		err = m.Send(context.Background(), a)
	}
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: 1})
	}
	if err == nil {
		_, err = device.Receive(context.Background(), b)
	}
	var starved *memory.DescriptorError
	fmt.Println(errors.As(err, &starved), errors.Is(err, driver.ErrExhausted), err)
	os.Exit(0)
}

func connOf(fd int) *net.UnixConn {
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		panic(err)
	}
	return conn.(*net.UnixConn)
}

// sockets returns the two ends of a connection.
func sockets(t *testing.T) (a, b *net.UnixConn) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	a, b = connOf(fds[0]), connOf(fds[1])
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestReceivedMemoryIsTheSenders(t *testing.T) {
	a, b := sockets(t)
	m, err := sealed(2 * 4096)
	require.NoError(t, err)
	require.NoError(t, m.Send(t.Context(), a))
	got, err := device.Receive(testwatch.Context(t), b)
	require.NoError(t, err)
	require.Equal(t, device.Memfd, got.About().Kind)
	require.Equal(t, 2*4096, got.About().Size)
	here, err := m.Take(4096, 4096)
	require.NoError(t, err)
	there, err := got.Take(4096, 4096)
	require.NoError(t, err)
	here.Bytes()[7] = 42
	require.EqualValues(t, 42, there.Bytes()[7])
	require.NoError(t, here.Free())
	require.NoError(t, m.Close())
	there.Bytes()[7]++ // the receiver's mapping and pages stay
	require.EqualValues(t, 43, there.Bytes()[7])
	require.NoError(t, there.Free())
	require.NoError(t, got.Close())
	require.ErrorIs(t, m.Send(t.Context(), a), device.ErrClosed)
	require.ErrorIs(t, ordinary(4096).Send(t.Context(), a), device.ErrNoDescriptor)
}

// The receiver believes the descriptor and not the sender: an access to other files' memory could end it.
func TestReceiveRefusesOtherDescriptors(t *testing.T) {
	open := func(path string) int {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		return fd
	}
	file := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(file, make([]byte, 4096), 0o600))
	unsealed, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	require.NoError(t, unix.Ftruncate(unsealed, 4096))
	shrinking, err := unix.MemfdCreate("shrinking", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	_, err = unix.FcntlInt(uintptr(shrinking), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	require.NoError(t, err)
	before := descriptors(t)
	for name, fd := range map[string]int{"file": open(file), "zero": open("/dev/zero"), "unsealed": unsealed, "shrinking": shrinking} {
		a, b := sockets(t)
		require.NoError(t, memory.SendDescriptor(a, fd))
		require.NoError(t, unix.Close(fd))
		_, err := device.Receive(testwatch.Context(t), b)
		require.ErrorIs(t, err, memory.ErrUnsealed, name)
		a.Close()
		b.Close()
	}
	require.Equal(t, before-2, descriptors(t), "none but those that were there") // unsealed and shrinking are closed
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func TestReceiveWithoutADescriptorReturnsErrNoDescriptor(t *testing.T) {
	for name, send := range map[string]func(a *net.UnixConn) error{
		"closed": func(a *net.UnixConn) error { return a.Close() },
		"byte":   func(a *net.UnixConn) error { _, err := a.Write([]byte("d")); return err },
		"two": func(a *net.UnixConn) error {
			_, _, err := a.WriteMsgUnix([]byte("d"), unix.UnixRights(0, 0), nil)
			return err
		},
		"other": func(a *net.UnixConn) error {
			_, _, err := a.WriteMsgUnix([]byte("x"), unix.UnixRights(0), nil)
			return err
		},
		"many": func(a *net.UnixConn) error {
			_, _, err := a.WriteMsgUnix([]byte("d"), unix.UnixRights(0, 0, 0, 0, 0, 0, 0, 0), nil)
			return err
		},
	} {
		a, b := sockets(t)
		before := descriptors(t)
		require.NoError(t, send(a), name)
		_, err := device.Receive(testwatch.Context(t), b)
		require.ErrorIs(t, err, device.ErrNoDescriptor, name)
		if name != "closed" {
			require.Equal(t, before, descriptors(t), name)
		}
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	_, b := sockets(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller gave up")
	go cancel(cause)
	_, err := device.Receive(ctx, b)
	require.ErrorIs(t, err, cause)
}

// SIGKILL ends the sender ahead of the receipt. A descriptor that was sent is the receiver's all the same.
func TestKilledSendersDescriptorArrivesIfItWasSent(t *testing.T) {
	for _, sends := range []string{"sends", "does not"} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		theirs, mine := os.NewFile(uintptr(fds[0]), "theirs"), connOf(fds[1])
		self, err := os.Executable()
		require.NoError(t, err)
		sender := exec.CommandContext(testwatch.Context(t), self)
		sender.Env, sender.ExtraFiles = append(os.Environ(), "GOPGAS_TEST_SENDER="+sends), []*os.File{theirs}
		require.ErrorContains(t, sender.Run(), "killed")
		theirs.Close()
		m, err := device.Receive(testwatch.Context(t), mine)
		mine.Close()
		if sends != "sends" {
			require.ErrorIs(t, err, device.ErrNoDescriptor)
			continue
		}
		require.NoError(t, err)
		p, err := m.Take(0, 4096)
		require.NoError(t, err)
		require.Equal(t, "passed on", string(p.Bytes()[:9]))
		require.NoError(t, p.Free())
		require.NoError(t, m.Close())
	}
}

// The kernel drops a descriptor for which the receiver has no number: the receiver says so.
func TestReceiveWithoutRoomForADescriptorNamesTheLimit(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	receiver := exec.CommandContext(testwatch.Context(t), self)
	receiver.Env = append(os.Environ(), "GOPGAS_TEST_SENDER=starves")
	out, err := receiver.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "true true ")
	require.Contains(t, string(out), "raise ulimit -n")
}

func TestOpenDescriptorLeavesTheFileToTheCaller(t *testing.T) {
	fd, err := memory.NewMemfd("opened", 4096)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd.FD()), "opened") // closes the descriptor of fd
	m, err := device.OpenDescriptor(file)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = file.Stat()
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = device.OpenDescriptor(file)
	require.Error(t, err)
}

// A memfd of huge pages that the host does not have is an error of the receipt, and not of a later access.
func TestReceiveHasThePagesPresentOrFails(t *testing.T) {
	fd, err := unix.MemfdCreate("huge", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_HUGETLB|unix.MFD_HUGE_2MB)
	if err != nil {
		t.Skipf("this kernel has no huge pages: %v", err)
	}
	const more = 1 << 40 // than a host has
	require.NoError(t, unix.Ftruncate(fd, more))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "huge")
	defer file.Close()
	_, err = device.OpenDescriptor(file)
	require.ErrorIs(t, err, memory.ErrNoMemory)
}
