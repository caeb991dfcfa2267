// Package mutant holds switches that break gopgas on purpose. Each is a constant
// that is false unless the build carries its tag, so that the compiler removes
// it. `make mutants` builds the litmus tests with each tag in turn and fails
// unless they fail. So the mutants show that the tests can fail.
package mutant
