package runtime

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// lockable returns the number of bytes that this process may lock. RDMA devices lock
// registered memory, so the heap must not be larger.
func lockable() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&header, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0 {
		return unix.RLIM_INFINITY
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// unusable is a provider whose devices this process must not use. The fabric finds out as
// it opens the device, and tells the other ranks the cause.
type unusable struct {
	driver.Provider
	cause error
}

func (u unusable) Open(context.Context, string, driver.Options) (driver.Context, error) {
	return nil, u.cause
}
