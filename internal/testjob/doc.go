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
// Every job runs under a watchdog: if none of its ranks makes a step for 30 seconds, all goroutines
// of its ranks are printed, and waits fail with [testwatch.ErrStuck]. A job that goes on ends its
// process, or its processes. The watchdog does not limit the job's whole duration. The
// fabric of each rank counts steps (waits that ended, requests that completed), so that
// tests need not; processes share their counts.
//
// # Which configurations
//
// A test runs on a sample with one transport of each kind: mapped, tcp, queued, and with
// the limits of RDMA devices. The sample differs from test to test, so that the tests of a
// package together run on every transport with every number of ranks. A test also runs on
// one configuration whose queues are often full ([Strained]). [EveryTransport] is for
// tests of a transport's own promises, such as litmus tests. GOPGAS_SOAK=1 runs all pairs.
// GOPGAS_ONLY=part runs the configurations whose names, such as "tcp-shallow/2", contain
// that part.
// The race detector cannot see memory that processes share, so race builds leave out
// shm.
//
// # Leaks
//
// [Main] fails the run if goroutines, descriptors or mappings of a heap are left
// at its end.
package testjob
