// Package active runs handlers at other ranks: a message names the handler that runs at
// its target, and a call returns the handler's reply.
//
//	e, err := active.Open(ctx, world, active.Handlers{"add": add})
//	reply, err := e.Call(ctx, 1, "add", request)
//	err = e.Close(ctx)
package active
