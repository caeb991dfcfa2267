// Package litmus holds the tests of docs/memory-model.md, statement by statement.
// They are small programs whose forbidden outcomes must never appear, on every
// provider, among goroutines of one process and between processes.
//
// scripts/mutants.sh shows that these tests can fail: it builds them against
// versions of gopgas that break one promise each (internal/mutant).
package litmus
