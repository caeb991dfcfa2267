//go:build linux

package window_test

import (
	"context"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testjob"
)

// withoutCopies is everyKindOnLent in a process to which the kernel denies process_vm_readv and
// process_vm_writev, as containers do.
func withoutCopies(ctx context.Context, r *testjob.Rank) {
	r.NoError(denyCopies())
	buf := make([]byte, 8)
	_, err := unix.ProcessVMReadv(unix.Getpid(), []unix.Iovec{{Base: &buf[0], Len: 8}}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&buf[0])), Len: 8}}, 0)
	r.ErrorIs(err, unix.EPERM)
	everyKindOnLent(ctx, r)
}

// denyCopies has the two system calls return EPERM in all threads of this process.
func denyCopies() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const number = 0 // offset of the number of the call in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_PROCESS_VM_READV},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PROCESS_VM_WRITEV},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
