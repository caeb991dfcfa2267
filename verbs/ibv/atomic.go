//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import "github.com/gopgas/gopgas/verbs/driver"

// setOperands fills in the operands of the device's two atomics. The device
// adds or compares with the first operand, and swaps in the second.
func setOperands(r *flatSend, wr *driver.WorkRequest) {
	switch wr.Op {
	case driver.OpFetchAdd:
		r.compare_add = C.uint64_t(wr.Operand)
	case driver.OpCmpSwap:
		r.compare_add, r.swap = C.uint64_t(wr.Compare), C.uint64_t(wr.Operand)
	}
}
