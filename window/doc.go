// Package window gives ranks typed memory. Every other rank of a team can put to it, get from it
// and update it atomically, and the owner takes no part.
//
//	w, err := window.Allocate[float64](ctx, world, 1000) // collective: 1000 elements at every rank
//	err = w.Put(ctx, right, 0, edge)                     // one-sided: store at the right neighbor
//	err = w.Fence(ctx)                                   // collective: everyone's stores are visible
//	use(w.Local())                                       // this rank's own 1000 elements
//
// The target is a rank of the window's team; index and lengths count elements.
//
// [Part] returns elements of another type in the same memory. [Create] makes a window of memory that the
// program has, and [On] lays the elements in memory of a device. [Blocks] describe elements that do not lie
// side by side. [RegisterOp] makes an operator of the program's own. A [Queue] carries operations apart from all others.
//
// # Completion
//
// Accesses need no epoch; [Window.Post] and [Window.Start] offer epochs of a few ranks. A blocking Put
// returns at local completion: the source may be changed again. [Window.Flush] adds remote completion: any
// rank that learns that Flush returned, by any path, sees the data. [Window.Fence] is a FlushAll and a
// barrier. Operations of one origin on one target are unordered unless a flush, a fence, an [Window.Order] or
// a notified operation stands between. The file docs/memory-model.md has the rules, and a litmus test for
// each.
//
// # Errors
//
// A wrong argument is an [OpError] at once and changes nothing. A transfer that fails later,
// or the death of the target, becomes the target's error. Every later flush, fence, lock and
// wait returns it, and every operation that goes through a queue. A put, get or atomic on
// mapped memory does not check whether its target lives, and returns no such error. It looks at no context
// either, nor does a [Window.Lock] there that finds the lock free. A loop that waits by such calls must look at
// ctx.Err itself. [WaitUntil] and [Window.WaitNotify] look at both.
//
// # Layout
//
// A window's memory is one region per rank, by default with 2.7 KiB of words ahead of the elements. Only the
// number of elements may differ:
//
//	0            lock: state, writers waiting
//	64           wake-up count of locks; goroutines that wait for elements
//	128          ranks that wait for the lock, and bits of epochs: 3 bits for each rank
//	+ pad to 64  locks of wide elements, 16 of 128 bytes
//	+            notification slots, 8 bytes each
//	+            attachments, 8 bytes each, see [WithAttachments]
//	+ pad to 64  elements, n x size; [WithAlignment] pads more
//
// The elements of [AllocateShared] lie in one array at rank 0 instead, and those of [Create] and [On] in a region of their own.
//
// This rank reaches a mapped rank by loads and stores: a Put of 8 bytes is a
// bounds check and a store. It reaches the rest through internal/fabric.
package window
