package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls below do not tell the scheduler. None of them blocks; what they copy takes no
// longer than a copy of as much by the program itself; and who tells loses its place
// to another goroutine of the rank, whose thread then has to be woken. They are package
// syscall's, which those of package unix come to by a detour.

func send(fd int, b []byte) (int, unix.Errno) {
	raceSending()
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// sendVector sends what the vector names.
func sendVector(fd int, v []unix.Iovec) (int, unix.Errno) {
	raceSending()
	var msg unix.Msghdr
	msg.Iov = unsafe.SliceData(v)
	msg.SetIovlen(len(v))
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0, 0)
	return int(n), errno
}

func receive(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	raceReceived()
	return int(n), errno
}

func receiveVector(fd int, v []unix.Iovec) (int, unix.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)), 0, 0, 0)
	raceReceived()
	return int(n), errno
}

// epollPoll fills events with what is ready now.
func epollPoll(epfd int, events []unix.EpollEvent) int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))),
		uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

func iovec(b []byte) unix.Iovec {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	return v
}

// position is where b starts, as far as alignment is concerned.
func position(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// areWords tells whether b is aligned words of eight bytes.
func areWords(b []byte) bool { return len(b)%8 == 0 && position(b)%8 == 0 }
