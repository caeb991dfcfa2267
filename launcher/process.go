package launcher

import "syscall"

// A process is one rank as the launcher sees it.
type process struct {
	rank int
	host *host

	// Events that the supervising loop has seen.
	joined, left bool
	ended        bool
	absent       bool // it never ran
	lost         bool // with its host
	status       syscall.WaitStatus
	abort        string
	aborted      bool
	failed       bool
}
