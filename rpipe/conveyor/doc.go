// Package conveyor carries small records from any rank to any rank of a team. Records for
// one rank share the blocks of a pipe.
//
//	c, err := conveyor.Open[update](ctx, world)
//	go func() {
//		for u, err := range c.All(ctx) { ... } // until all ranks have finished
//	}()
//	err = c.Push(ctx, to, update{...})
//	err = c.Finish(ctx)
package conveyor
