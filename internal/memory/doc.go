// Package memory makes the memory that ranks register: sealed memfds, which peers
// of the same host can map as well, and aligned memory of the Go heap.
//
//	owner                                  peer of the same host
//	NewMemfd   sparse, sealed, mapped      Import   opened through /proc, checked, mapped
//	Commit     pages are there, or error   Bytes    loads and stores
//	Punch      pages given back            Close    range overlaid
//	Close      range overlaid
//
// # No fault, ever
//
// A fault in mapped memory kills the process, and no recover helps. Therefore
//
//   - a memfd is sealed against shrinking and growing, and Import refuses one
//     that is not: no process can take pages from under a mapping;
//   - Commit makes pages present before they are used, so that a host without
//     memory is an error where memory is asked for and not a signal where it
//     is used;
//   - nothing is ever unmapped. Close replaces the range with anonymous memory
//     at the same place: a stale slice reads garbage but does not fault, and
//     its addresses go to no other allocation.
//
// This package sets no finalizers: one would run while a slice is still in use.
package memory
