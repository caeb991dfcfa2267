// Package rmalloc holds the bookkeeping of remote memory: who may put what
// where in a heap that lies at another rank, and how freed memory finds its way
// back. It moves no bytes, takes no locks and starts no goroutines; a caller
// that shares one of its values between goroutines brings the lock.
//
// A pipe has a heap of memory at one end and both ends keep books about it:
//
//	  writer                                            reader
//	+-----------------------------+                   +--------------------+
//	| Heap, the shadow:           |  data, then Flag  | the heap's memory  |
//	|  A  B  C  hole  D  hole     | ----------------> |  A  B  C ... D ... |
//	|  Alloc, Send                |                   | Held: blocks read  |
//	|  Release <- TagTaker        | <---------------- | Pending -> TagRing |
//	+-----------------------------+  tags of freed    +--------------------+
//	                                 granules
//
// The writer allocates in its shadow without asking anyone: what it sees there
// as free was free or has been given back by a tag since. This is rmalloc as
// Wickramasinghe and Lumsdaine describe it (rmalloc() and rpipe(), a uGNI-based
// distributed remote memory allocator, slides 17 to 22).
//
// # A block's life
//
//	         Alloc              Send                 Release (tag)
//	hole ----------> allocated ------> sent, read ----------------> hole
//	  ^                  |                  Held.Take  Held.Free -> Pending -> tag
//	  +------------------+
//	          Free
//
// Memory is counted in granules of 64 bytes. A block takes whole granules, at
// least one, and begins at the first byte of one, so payloads are aligned to
// cache lines. Its Addr carries a generation besides its place: addresses of
// blocks that are gone, freed twice or of another heap are ErrStale.
//
// # Words on the wire
//
// Words cross ranks whole, 64 bits at aligned places, and are their own proof:
// each has the lap of its ring in its top byte. All laps begin at 1, so that
// zeroed memory holds nothing.
//
//	Flag  lap 8 | kind 2 | offset 24 (granules) | length 30 (bytes)
//	tag   lap 8 | zero 7 | offset 24 (granules) | count 25 (granules)
//
// Whoever can write into a rank's memory can scribble over these words. So what
// is decoded here is checked against the heap before it is used: the answer to
// nonsense is Corrupt or ErrCorrupt, never a panic, an endless loop or a place
// outside the heap.
//
// # Costs
//
// Nothing allocates once a structure has grown to what its pipe needs, and it
// grows with use: a Heap takes 36 bytes or so for each block and each hole there
// has been at once. Finding, freeing and coalescing are O(1); choosing a hole
// costs what its Policy says; a hole that appears between two blocks is filed
// in at most as many steps as there are holes before it, or blocks between it
// and the next hole below, whichever is less.
package rmalloc
