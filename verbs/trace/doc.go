// Package trace wraps any provider and counts requests and completions, or
// hands each to a function that prints it. Tests use it to prove the cost of an
// operation: how many work requests a put is, whether they are inline, how many
// of them are signaled.
//
//	verbs
//	  |  every call
//	trace.Provider --> counters, one set per QP and one in all; sink(Event)
//	  |  the same call, unchanged
//	loop, shm, tcp, ibv, faulty
//
//	p := trace.New(loop.New())
//	...                                      // connect
//	p.Reset()
//	...                                      // the operation to look at
//	cost := p.Snapshot().Total.Posted[driver.OpWrite]
//
// A wrapped QP is a [driver.Mapper] or a [driver.Canceler] exactly if the
// wrapped one is. Trace does not count loads and stores through a mapping. So a
// test can show that a mapped put posts nothing.
//
// Counting is atomic and allocates nothing. A sink costs its own time.
package trace
