// Package rmalloc holds the books of remote memory: the blocks of a heap at
// another rank, their owners, and the freed memory on its way back. It moves no
// bytes, takes no locks and starts no goroutines. A caller that shares a value
// between goroutines brings the lock, except for Recent.
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
// The writer allocates in its shadow without a message: memory that the shadow
// shows as free was free, or a tag has given it back since. This is rmalloc as
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
// The reader's last blocks are in Recent, which takes no lock to free one. Later the reader
// moves held blocks from Recent to Held, and freed ones to Pending.
//
// Memory is counted in granules of 64 bytes. A block takes whole granules, at
// least one, and begins at the first byte of one, so payloads are aligned to
// cache lines. Its Addr carries a generation besides its place: an address is
// ErrStale if its block is gone, was freed before, or lies in another heap.
//
// # Words on the wire
//
// Words cross ranks whole, 64 bits at aligned places. Each has the lap of its
// ring in its top byte, which proves that it is new. All laps begin at 1, so that
// zeroed memory holds nothing.
//
//	Flag  lap 8 | kind 2 | offset 24 (granules) | length 30 (bytes); a small block behind it
//	tag   lap 8 | zero 7 | offset 24 (granules) | count 25 (granules)
//
// A peer that can write into a rank's memory can overwrite these words with
// anything. So this package checks each decoded word against the heap before it
// uses it. Its answer to nonsense is Corrupt or ErrCorrupt, never a panic, an
// endless loop or a place outside the heap.
//
// # Costs
//
// A structure allocates only while it grows to the size that its pipe needs. A
// Heap takes about 36 bytes for each block and each hole that it had at the same
// time. Finding, freeing and coalescing are O(1). The Policy determines the cost
// of choosing a hole. Filing a hole that appears between two blocks takes two
// walks that meet. The steps are at most the number of holes before it, or of
// blocks between it and the next hole below.
package rmalloc
