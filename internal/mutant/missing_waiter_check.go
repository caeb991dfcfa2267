//go:build mutant_missing_waiter_check

package mutant

// MissingWaiterCheck: a waiter parks without looking again after it announced itself.
const MissingWaiterCheck = true
