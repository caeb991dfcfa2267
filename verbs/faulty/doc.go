// Package faulty wraps any provider and adds the worst behavior that a reliable
// provider may show. So tests meet that behavior before users do.
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
// starts and completions, each for a bounded time. It reorders requests that
// package driver leaves unordered. It takes fewer requests than were posted,
// and refuses some though there is room. It fails a chosen request, cuts
// connections and stalls. See [Plan] for each; every kind of fault has a file
// of its own.
//
// # Replay
//
// Each decision about a request follows from Plan.Seed and three counts. They are the contexts
// opened, the queue pairs created and the requests posted on the queue pair before. Package faulty
// does not replay the interleaving of goroutines; single-threaded programs see the same faults each
// time.
//
// # How
//
// Every request goes to the wrapped provider signaled and under a number of its
// own. So faulty learns of its end. Completions come out in the order of
// posting, without those of unsignaled requests. A goroutine that posts or
// polls ends the holds that are over. One goroutine per context, the pump, does
// so too: it sleeps until the next hold is over. So no request waits for a poll
// that may never happen. The pump rings the rank's bell when a completion can
// be polled.
//
// Loads and stores reach a mapped peer past every provider. So a plan with
// faults hides [driver.Mapper] unless Plan.KeepMapper is set. A plan without
// faults changes nothing: Open returns the wrapped provider's context.
package faulty
