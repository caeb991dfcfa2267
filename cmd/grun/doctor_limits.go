package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A limit is a resource limit and what gopgas would like it to be.
type limit struct {
	resource int
	what     string
	want     uint64
	below    verdict // when the limit is lower
	mend     string
}

var (
	limitAS = limit{unix.RLIMIT_AS, "of address space", 1 << 40, warn,
		"ulimit -v unlimited: every rank maps every neighbour's heap"}
	limitFileSize = limit{unix.RLIMIT_FSIZE, "in one file", 1 << 34, warn,
		"ulimit -f unlimited: a symmetric heap is one memory file; or pass a smaller --heap"}
	limitMemlock = limit{unix.RLIMIT_MEMLOCK, "can be locked", 64 << 10, warn,
		"ulimit -l unlimited: RDMA devices lock what they may reach; shm and tcp do not"}
	limitProcesses = limit{unix.RLIMIT_NPROC, "processes and threads", 1024, warn,
		"ulimit -u 4096"}
)

const (
	fewDescriptors   = 256
	manyDescriptors  = 4096
	noLimit          = ^uint64(0)
	mendDescriptors  = "ulimit -n 65536: tcp needs one descriptor for each peer"
	textDescriptors  = "%d descriptors (ulimit -n), up to %d on request"
	descriptorsIsLow = "%d descriptors (ulimit -n) and no more on request"
)

func checkLimit(l limit) func() finding {
	return func() finding {
		var r unix.Rlimit
		if err := unix.Getrlimit(l.resource, &r); err != nil {
			return failing("getrlimit", err, "")
		}
		return l.judge(r.Cur)
	}
}

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
		return finding{l.below, text, l.mend}
	}
	return finding{verdict: ok, text: text}
}

// checkDescriptors looks at the hard limit too, since Go raises the soft one.
func checkDescriptors() finding {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return failing("getrlimit", err, "")
	}
	return judgeDescriptors(r)
}

func judgeDescriptors(r unix.Rlimit) finding {
	switch {
	case r.Max < fewDescriptors:
		return finding{fail, fmt.Sprintf(descriptorsIsLow, r.Max), mendDescriptors}
	case r.Max < manyDescriptors:
		return finding{warn, fmt.Sprintf(descriptorsIsLow, r.Max), mendDescriptors}
	}
	return finding{verdict: ok, text: fmt.Sprintf(textDescriptors, r.Cur, r.Max)}
}

func checkPidfd() finding {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return failing("pidfd_open", err, "use Linux 5.3 or newer, or allow pidfd_open in the sandbox")
	}
	unix.Close(fd) //nolint:errcheck // nothing depends on it
	return finding{verdict: ok, text: "processes can be watched without mistaking one for another"}
}
