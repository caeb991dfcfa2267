// Package active runs handlers at other ranks: a message names the handler that runs at its target,
// and a call returns the handler's reply. (See von Eicken, Culler, Goldstein and Schauser, "Active
// Messages: a Mechanism for Integrated Communication and Computation", ISCA 1992.)
//
//	rank 0                                       rank 1
//	Call "add"  --- requests, by a batch --->   fan-in -> workers: handler "add"
//	reply       <-- replies, by a batch -----
//
// All ranks of the team open an [Endpoint] with their handlers, call each other's
// handlers, and close:
//
//	e, err := active.Open(ctx, world, active.Handlers{"add": add})
//	reply, err := e.Call(ctx, 1, "add", request)
//	err = e.Close(ctx)
//
// A request or reply is a frame in a block of a pipe. Frames lie one behind the other,
// each at a multiple of 8 bytes. Numbers are little-endian:
//
//	0     1       4       8     16       24
//	kind  reason  length  name  call id  payload, then up to 7 zero bytes
package active
