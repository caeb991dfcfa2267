//go:build linux

package launcher

import (
	"fmt"
	goruntime "runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An action is a kernel's struct sigaction. It holds zero, the default, or a
// value that the kernel returned, so its fields need no names.
type action [8]uint64

const sizeofSigset = 8

// Suspend stops this process as an uncaught SIGTSTP does, and returns when the
// process goes on. It returns at once if nothing could continue the process: the
// kernel stops no orphaned process group.
func Suspend() error {
	goruntime.LockOSThread() // a signal to the calling thread takes effect before the call returns
	defer goruntime.UnlockOSThread()
	var byDefault, caught action
	if err := sigaction(unix.SIGTSTP, &byDefault, &caught); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	err := unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
	if restoreErr := sigaction(unix.SIGTSTP, &caught, &byDefault); err == nil {
		err = restoreErr
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// sigaction sets the kernel's action for a signal, and returns the earlier one.
func sigaction(sig unix.Signal, to, from *action) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(from)), sizeofSigset, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
