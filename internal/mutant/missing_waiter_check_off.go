//go:build !mutant_missing_waiter_check

package mutant

// MissingWaiterCheck: a waiter announces itself and parks without looking again.
const MissingWaiterCheck = false
