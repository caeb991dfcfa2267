// Package testjob runs jobs from `go test`: as goroutines of the test on every
// provider, or as processes that are the test binary once more.
//
//	in one process                       several processes
//	Each -> runtime.RunLocal             Run -> launcher.Run -> test binary x n
//	        per Config: a provider,               Main: this is a rank, so it
//	        mapped or queued, n ranks             runs a body instead of the tests
//
// A test's body gets a [Rank]: its job, and assertions. An assertion that fails
// ends the rank, which counts as dead, so that the others end as well.
//
// Every job runs under a watchdog: when none of its ranks makes a step for 30
// seconds, waits fail with [testwatch.ErrStuck]. How long the job takes as a whole does not
// matter. Steps are counted by the fabric of each rank (waits that ended, requests that
// completed), so that tests need not count them; processes tell each other theirs.
//
// # Which configurations
//
// A test runs on a sample in which each provider and each number of ranks
// appears, and which differs from test to test, and on one configuration whose
// queues are often full ([Strained]). GOPGAS_SOAK=1 runs all pairs. GOPGAS_ONLY=part
// runs those whose names, such as "tcp-shallow/2", have that part.
// Under the race detector, which cannot see memory that is shared by processes,
// shm is left out.
//
// # Leaks
//
// [Main] fails the run if goroutines, descriptors or mappings of a heap are left
// at its end.
package testjob
