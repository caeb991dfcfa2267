// Package litmus holds the tests of docs/memory-model.md, statement by
// statement: small programs whose forbidden outcomes must never be seen, on
// every provider, among goroutines of one process and between processes.
//
// That these tests can fail is shown by scripts/mutants.sh, which builds them
// against versions of gopgas that break one promise each (internal/mutant).
package litmus
