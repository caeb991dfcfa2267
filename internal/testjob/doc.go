// Package testjob runs jobs from `go test`: as goroutines of the test on every
// provider, or as processes that run the test binary again.
//
//	in one process                       several processes
//	Each -> runtime.RunLocal             Run -> launcher.Run -> test binary x n
//	        per Config: a provider,               Main: this is a rank, so it
//	        mapped or queued, n ranks             runs a body instead of the tests
//
// A test's body gets a [Rank]: its job, and assertions. An assertion that fails
// ends the rank, which counts as dead, so that the other ranks end as well.
//
// Every job runs under a watchdog: if none of its ranks makes a step for 30 seconds, waits
// fail with [testwatch.ErrStuck]. The watchdog does not limit the job's whole duration. The
// fabric of each rank counts steps (waits that ended, requests that completed), so that
// tests need not; processes share their counts.
//
// # Which configurations
//
// A test runs on a sample in which each provider and each number of ranks appears,
// and which differs from test to test. It also runs on one configuration whose
// queues are often full ([Strained]). GOPGAS_SOAK=1 runs all pairs. GOPGAS_ONLY=part
// runs the configurations whose names, such as "tcp-shallow/2", contain that part.
// The race detector cannot see memory that processes share, so race builds leave out
// shm.
//
// # Leaks
//
// [Main] fails the run if goroutines, descriptors or mappings of a heap are left
// at its end.
package testjob
