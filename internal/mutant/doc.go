// Package mutant holds switches that break gopgas on purpose. Each is a constant
// that is false unless the build carries its tag, so that the compiler removes
// it. `make mutants` builds the litmus tests with each tag in turn and fails
// unless they fail. So the mutants show that the tests can fail.
//
// The tag mutant_hesitate breaks nothing: each rank pauses at random ahead of and behind
// collective calls, as on a machine that other programs keep busy. With it, all tests must
// pass (`make hesitate`).
package mutant
