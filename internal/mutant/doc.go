// Package mutant holds switches that break gopgas on purpose. Each is a constant that is false
// unless the build has the tag mutants, so that the compiler removes it. A build with the tag
// breaks what the variable GOPGAS_MUTANT names, and is whole without it. `make mutants` runs
// tests with each name in turn, and fails unless they fail. So the mutants show that the tests can
// fail.
//
// The tag mutant_hesitate breaks nothing: goroutines pause at random, as on a machine that other
// programs keep busy. They do so ahead of and behind collective calls, and inside protocols: between
// the store of a condition and its ring, between the stages of a call, around posts and polls, and
// among the messages of a launcher. With it, all tests must pass (`make hesitate`).
package mutant
