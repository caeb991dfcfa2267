// Package faulty wraps any provider and does what a reliable provider may do
// at its worst, so that tests meet it before users do.
//
//	verbs
//	  | PostSend                                  Poll ^
//	  v                                                |
//	faulty: requests that wait -> started -> done -> due -> ready
//	  |        delay, reorder,       ^         delay, shuffle
//	  v        stall, cut, error     |
//	loop, shm, tcp, ibv  ------------+
//
// RC verbs neither drop nor duplicate, so faulty does not either. It delays
// (starts and completions, each for a bounded time), reorders what
// package driver leaves unordered, takes fewer requests than were posted,
// refuses some though there is room, fails a chosen request, cuts connections
// and stalls. See [Plan] for each; every kind of fault has a file of its own.
//
// # Replay
//
// Each decision about a request follows from Plan.Seed, from how many contexts
// were opened and queue pairs created before, and from how many requests were
// posted on its queue pair before. Only the interleaving of goroutines is not
// replayed; single-threaded programs see the same faults each time.
//
// # How
//
// Every request goes to the wrapped provider signalled and under a number of
// its own, so that its end is known; completions come out in the order of
// posting, those of unsignalled requests not at all. What is held is let go by
// whoever posts or polls, or else by one goroutine per context, the pump,
// which sleeps until the next hold is over: nothing waits for a poll that
// never comes, and the rank's bell is rung whenever a completion can be polled.
//
// A mapped peer is reached by loads and stores that no provider sees. So a plan
// with faults hides [driver.Mapper] unless Plan.KeepMapper is set. A plan
// without faults changes nothing: Open returns the wrapped provider's context.
package faulty
