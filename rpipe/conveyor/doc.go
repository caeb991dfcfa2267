// Package conveyor carries small records from any rank to any rank of a team. Records for
// one rank share the blocks of a pipe.
//
//	Push(3, r)   [r r r r r r . .]  block for rank 3, at that rank or registered here
//	Push(5, r)   [r r . . . . . .]  block for rank 5
//	                 |
//	                 +-- leaves when it is full (WithBatch), when its first record has
//	                     waited for some time (WithBound), or by Flush
//
// All ranks of the team open a [Conveyor]. One goroutine pushes and finishes, another one
// pulls until io.EOF, and all ranks close:
//
//	c, err := conveyor.Open[update](ctx, world)
//	go func() {
//		for u, err := range c.All(ctx) { ... } // until all ranks have finished
//	}()
//	err = c.Push(ctx, to, update{...})
//	err = c.Finish(ctx)
//
// Programs that work in steps end a phase after each, by EndPhase in place of Finish: All
// then ends when all ranks have ended the phase, and the next All takes the next one.
//
// The idea comes from the conveyors in bale (Maley and DeVinney, "Conveyors for Streaming
// Many-to-Many Communication", IA3 2019).
package conveyor
