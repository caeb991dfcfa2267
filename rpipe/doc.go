// Package rpipe is one-sided messaging without explicit synchronization: pipes
// between two ranks. The writer allocates memory at the reader without a message,
// and the reader learns of data by a flag that it polls. The reader posts no
// receive, and neither end calls a fence.
//
//	w, err := rpipe.OpenWriter[float64](ctx, world, 1)   r, err := rpipe.OpenReader[float64](ctx, world, 0)
//	b, err := w.Alloc(ctx, 100)                          b, err := r.Read(ctx)
//	fill(b.Mem())                                        use(b.Mem())
//	err = w.Write(ctx, b)                                err = r.Free(b)
//
// It is rmalloc and rpipe as Wickramasinghe and Lumsdaine describe them in "rmalloc() and rpipe(),
// a uGNI-based distributed remote memory allocator and access library for one-sided messaging":
//
//	theirs              here
//	rpipe, HD_PIPE      OpenWriter, OpenReader: half-duplex is in the types
//	PIPE_WIDTH          WithWidth
//	rmalloc             Writer.Alloc
//	rmem                Block.Mem
//	rwrite              Writer.Write
//	rread               Reader.Read; a pull pipe's fetches
//	rfree               Reader.Free
//	raddr_t             Block, and Addr to print
//	NFP                 the ring of notifications
//	shadow heap         rmalloc.Heap, at the writer
//	tag list            the ring of tags
//	PUT_W_SYNC, 2PUTS   a Write, WithTwoPuts
//
// # A block's way
//
//	 writer                                         reader
//	+---------------------------+                  +---------------------------+
//	| shadow: A B hole C        |   block, then    | heap: A B .... C          |
//	| Alloc takes a hole        |   notification   | Read polls the ring       |
//	| Write  -------------------+----------------->| [n][n+1][  ][  ]          |
//	|                           |                  | Free: sorted, coalesced   |
//	| ring of tags [t][t][ ]  <-+------------------+ tags and credit, one write|
//	+---------------------------+  when there are  +---------------------------+
//	                               enough of them
//
// On a peer whose memory is mapped, Mem is the reader's memory itself and Write is one store. The
// bytes of a block of up to 56 bytes travel in the cache line of its notification. There Mem is
// memory of the writer's own. Write copies it into that line, and Read copies it out. For a block
// of 4 to 512 KiB Mem is memory of the writer's own, too. Write copies it into the reader's memory
// by whole cache lines. Elsewhere Mem is registered memory from which the block leaves as it is: no
// byte is copied by a CPU but those that the device copies as they are posted (see [WithFMA]). Read
// returns a block where it arrived.
//
// A push pipe moves the block as it is written. A pull pipe ([WithPull]) leaves it at the writer.
// The reader fetches it when it reads it or a block before it, and the tag goes back as it is read;
// where the writer is mapped, the reader uses it in place. Tiny blocks can be fetched by an atomic
// ([WithAtomicReads]).
//
// # Products
//
// [Reader.Arrivals] is a Go channel for select. Other products have packages of their
// own, each with its own options:
//
//	fan       many pipes behind one handle: a fan-in reads them, a fan-out writes them
//	conveyor  small records from any rank to any rank
//	active    handlers that run at other ranks, and their replies
//	gochan    channels of Go values
//	netpipe   connections and listeners of package net, so that net/http runs between ranks
//
// # When the writer learns of freed memory
//
// [Deferred]: freed ranges wait at the reader in a sorted list, where neighbors become one range.
// The reader announces the list in one write, once it is a quarter of the heap or half of the
// blocks. It also does so once it has read half of the width. A writer that waits gets the
// announcement within a millisecond, any writer within eight. Alloc posts nothing.
//
// [Immediate]: the reader stores each tag at home, and each Alloc fetches those
// that are new, by one read. Free posts nothing. It is the default of [BestFit]
// and [WorstFit]: they choose among all holes, so they need to know them all.
//
// # Lifecycle
//
//	OpenWriter, OpenReader   local; found by team, ranks, name and count of openings
//	first use                connects; cards are compared: ErrMismatch names what differs
//	Alloc, Write, Read, Free
//	Writer.CloseWrite        tells the reader that no block follows
//	Writer.Close             waits until all was read
//	Reader: io.EOF, Close    memory goes back when the other end puts nothing more there
//
// A writer waits for the reader when the pipe's width or heap is used up. A reader waits for the
// writer when no block has arrived. A wait ends with its context and with the job. It ends with the
// death of the peer ([runtime.ErrRankDead]), after the reader has read all blocks that arrived. If
// the peer's rank returns from its body without closing its end, a wait ends likewise, with
// [runtime.ErrClosed] of that rank; over a window, only if that rank had opened its end. A call
// whose name begins with Try waits for no peer: it returns [ErrWouldBlock] instead.
//
// A closed end lingers while its peer may still write into its memory. The peer's
// last flag ends that, and a timer looks for it. An end whose peer is never opened
// lingers until the job ends: a peer that opens later learns that it is too late. Two
// ends that do not match linger until both have found out.
//
// # Layout
//
// Each end has one region that its peer puts into:
//
//	          writer's end                reader's end
//	card      256 bytes                   256 bytes
//	tags      2 x blocks words (deferred) 2 x blocks words (immediate)
//	heap      pull                        push
//	flags     credit, end                 width + 1 notifications, wanted, bye
//
// All words are 64 bits and stored whole. The lap in a notification or tag shows
// whether it is new. The numbers below are widths in bits:
//
//	notification  lap 8 | kind 2 | offset 24 (granules of 64 bytes) | length 30 (bytes)
//	              (in a push pipe on the fabric 56 bytes of room for a block are behind it)
//	tag           lap 8 | zero 7 | offset 24 (granules) | count 25 (granules)
//	credit        tags in all 32 | blocks read 32
//	wanted        times that the writer waited 62 | it waits for width 1 | for memory 1
//	              (all ones: the writer has given up)
//	end           64: 1 the reader has read all, 2 it closed before that
//	bye           64: 1 the writer writes nothing more
//
// A peer can write any bytes into these words. An end checks each word that it
// reads: an impossible value is [ErrCorrupt], and no end touches memory outside the
// heap.
//
// # Memory without a reader
//
// Package farheap leaves the reader out: its Heap is memory at a rank whose program does
// nothing for it. The client allocates there by the same shadow, and puts, gets and frees.
//
// # Over a window
//
// [OverWindow] and [WithWindow] run the same pipes over a window's public calls, as
// the paper runs them on windows of MPI-3. Flags are notification slots, and each
// end lies in a place of the window. So do fan-ins, fan-outs, conveyors and active messages.
package rpipe
