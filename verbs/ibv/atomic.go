//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import "github.com/gopgas/gopgas/verbs/driver"

// setOperands fills in what the two atomics of the device need: it has one
// operand that is added or compared with, and one that is swapped in.
func setOperands(r *flatSend, wr *driver.WorkRequest) {
	switch wr.Op {
	case driver.OpFetchAdd:
		r.compare_add = C.uint64_t(wr.Operand)
	case driver.OpCmpSwap:
		r.compare_add, r.swap = C.uint64_t(wr.Compare), C.uint64_t(wr.Operand)
	}
}
