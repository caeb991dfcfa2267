//go:build linux

package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below do not tell the scheduler. No call blocks, and each takes no longer
// than a copy of the same bytes by the program itself. A call that told the scheduler
// would lose its place to another goroutine of the rank. The kernel would have to wake
// a thread for that. The calls are those of package syscall, which package unix reaches
// by a detour.

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

// epollPoll fills events with the entries that are ready now.
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

// position returns the address of b, for its alignment.
func position(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// areWords reports whether b is aligned words of eight bytes.
func areWords(b []byte) bool { return len(b)%8 == 0 && position(b)%8 == 0 }
