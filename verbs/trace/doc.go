// Package trace wraps any provider and counts what passes, or hands each
// request to a function that prints it. Tests use it to prove what an operation
// costs: how many work requests a put is, whether they are inline, how many of
// them are signalled.
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
// wrapped one is. Loads and stores through a mapping pass by uncounted: that a
// mapped put posts nothing is what such a test wants to see.
//
// Counting is atomic and allocates nothing. A sink costs what it does.
package trace
