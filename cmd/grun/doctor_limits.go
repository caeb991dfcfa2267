//go:build linux

package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A limit is a resource limit and the value that gopgas prefers.
type limit struct {
	resource int
	what     string
	want     uint64
	mend     string
}

// limits lists the limits that the doctor checks besides descriptors.
func limits() (addressSpace, fileSize, memlock, processes limit) {
	addressSpace = limit{unix.RLIMIT_AS, "of address space", 1 << 40,
		"ulimit -v unlimited: every rank maps every neighbor's heap"}
	fileSize = limit{unix.RLIMIT_FSIZE, "in one file", 1 << 34,
		"ulimit -f unlimited: a symmetric heap is one memory file; or pass a smaller --heap"}
	memlock = limit{unix.RLIMIT_MEMLOCK, "can be locked", 64 << 10,
		"ulimit -l unlimited: RDMA devices lock the memory that they may reach; shm and tcp do not"}
	processes = limit{unix.RLIMIT_NPROC, "processes and threads", 1024, "ulimit -u 4096"}
	return addressSpace, fileSize, memlock, processes
}

const (
	fewDescriptors  = 256
	manyDescriptors = 4096
	noLimit         = ^uint64(0)
)

// checkLimit returns the check of a limit of this process.
func checkLimit(l limit) func() finding {
	return func() finding {
		var r unix.Rlimit
		if err := unix.Getrlimit(l.resource, &r); err != nil {
			return failing("getrlimit", err, "")
		}
		return l.judge(r.Cur)
	}
}

// judge says whether a limit suffices, and how to raise it if not.
func (l limit) judge(current uint64) finding {
	amount := bytesText(current)
	switch {
	case current == noLimit:
		amount = "unlimited"
	case l.resource == unix.RLIMIT_NPROC:
		amount = fmt.Sprint(current)
	}
	text := amount + " " + l.what
	if current < l.want {
		return finding{warn, text, l.mend}
	}
	return finding{verdict: ok, text: text}
}

// checkDescriptors checks the hard limit, too, since Go raises the soft one.
func checkDescriptors() finding {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return failing("getrlimit", err, "")
	}
	return judgeDescriptors(r)
}

// judgeDescriptors looks at the hard limit, up to which a rank raises its own.
func judgeDescriptors(r unix.Rlimit) finding {
	text := fmt.Sprintf("%d descriptors (ulimit -n), up to %d on request", r.Cur, r.Max)
	const mend = "ulimit -n 65536: tcp needs one descriptor for each peer"
	switch {
	case r.Max < fewDescriptors:
		return finding{fail, text, mend}
	case r.Max < manyDescriptors:
		return finding{warn, text, mend}
	}
	return finding{verdict: ok, text: text}
}

// checkPidfd finds out whether the kernel has pidfds.
func checkPidfd() finding {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return failing("pidfd_open", err, "use Linux 5.3 or newer, or allow pidfd_open in the sandbox")
	}
	unix.Close(fd) //nolint:errcheck // nothing depends on it
	return finding{verdict: ok, text: "processes can be watched without mistaking one for another"}
}
