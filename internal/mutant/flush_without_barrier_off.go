//go:build !mutant_flush_without_barrier

package mutant

// FlushWithoutBarrier: a flush returns without full barrier or acknowledgement.
const FlushWithoutBarrier = false
