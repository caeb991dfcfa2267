//go:build linux

package launcher

import "syscall"

// A process is one rank as the launcher sees it.
type process struct {
	rank int
	host *host

	// Events that the supervising loop has seen.
	joined, left bool
	mpi          bool // it joined by PMI
	unmanaged    bool // its connection with the process manager has ended
	exited       bool // its process has ended
	ended        bool // its end was judged
	absent       bool // it never ran
	lost         bool // with its host
	status       syscall.WaitStatus
	abort        string
	aborted      bool
	failed       bool
}
