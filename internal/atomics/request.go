package atomics

import "github.com/gopgas/gopgas/verbs/driver"

// Accumulate carries out an OpAccumulate request on mem, which is as long as its segment. If the request
// has runs, mem holds all of their blocks, and its first byte is at place from.
func Accumulate(mem []byte, from int, wr *driver.WorkRequest) {
	operands, old := wr.Local[0].Mem, []byte(nil)
	if wr.Flags&driver.Fetch != 0 {
		old = operands
	}
	if len(wr.Runs) > 0 {
		ApplyRuns(mem, from, wr.Runs, wr.Atomic, int(wr.Width), operands, old)
		return
	}
	ApplyEach(mem, wr.Atomic, int(wr.Width), operands, old)
}
