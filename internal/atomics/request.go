package atomics

import "github.com/gopgas/gopgas/verbs/driver"

// Accumulate carries out an OpAccumulate request on mem, which is as long as its segment.
func Accumulate(mem []byte, wr *driver.WorkRequest) {
	operands, old := wr.Local[0].Mem, []byte(nil)
	if wr.Flags&driver.Fetch != 0 {
		old = operands
	}
	ApplyEach(mem, wr.Atomic, int(wr.Width), operands, old)
}
