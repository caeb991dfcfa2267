package mutant

// A Rate says how often a goroutine comes to a point for each pause there.
type Rate int

// Frequent points have a small share of pauses, so that tests take about as long.
const (
	Call      Rate = 8    // collective calls, their stages, connections, processes
	Message   Rate = 32   // messages by way of the launcher, rounds of a barrier, and atomics of a lock
	Operation Rate = 5000 // posts, polls, rings, waits
)
