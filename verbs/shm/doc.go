// Package shm is the provider for ranks of one host. It maps the peer's
// registered memory and executes a request where it is posted: a WRITE is a
// copy, an atomic is an instruction of this CPU. The peer's program takes no
// part in WRITE, READ and atomics, and neither does any thread of its process.
//
//	process A                                    process B
//	QP.PostSend ── copy, CPU atomic ───────────> memory registered by B
//	control memfd of A <──── reads ───────────── CQ.Poll takes messages in
//	  CQ.Poll ────── reads ────────────────────> control memfd of B
//	doorbell bit and bell of B <── set by A ──── and the other way round
//
// # The control memfd
//
// Each context has one small memfd that its peers map. All of it is written
// by its owner alone, except doorbells and bell:
//
//	header      magic, token, bell, doorbell bits: "QP i, look at your peer"
//	MR table    one line per registration: key, memfd, offset, length, rights
//	QP blocks   connection word, receives posted, and the ring of messages
//	            that this QP sends
//
// control.go has the offsets, ring.go the records, address.go what a QP address
// holds.
//
// # Messages
//
// A message (SEND, or the notice of a WRITE_WITH_IMM) lies in the *sender's*
// ring; the receiver copies it out when it polls, and publishes how far it got
// in its own block. So a peer that is late, reset or dead never writes into
// something that has been given to others meanwhile. The receiver also
// publishes the length of each receive that it posts: the sender knows before
// it starts whether there is one and whether the message fits. A message
// larger than the ring travels in pieces.
//
// A request that cannot go on waits in the QP's send queue with the later ones
// behind it: the ring is full, the peer has no receive, the peer is not yet
// connected, or the QP is in SQD. Poll and Wait go on with it when the doorbell
// says so; when the program does neither for a millisecond, a goroutine does.
// The receiver's side has no such goroutine: it takes messages in when it
// polls, so a sender can be ahead of it by one ring, and no more.
//
// # Connection
//
// Each QP has a random nonce and an epoch that every RESET moves. At RTR a QP
// publishes which nonce and epoch it is bound to; requests start once both
// sides are bound to each other. A peer that leaves that epoch ends the
// connection: the next request, or the first that waits, completes with
// RetryExceeded. After ERR, Close and death (seen through a pidfd within
// milliseconds) that happens without a request as well, with EventQPFatal, and
// after everything that had arrived was taken in. A WRITE to a process that
// died a moment ago may still succeed. A stopped process is not dead: its
// memory can be read and written as ever.
//
// # Registration
//
// Closing an MR invalidates its key for every later request, and then waits for
// those that are being executed: each QP says in its block when it is within
// one. Views of the peer's table are cached and cost one load to check again.
// What was once mapped stays mapped until the context closes.
//
// # Waiting
//
// Ranks bring a bell that lies in a memfd; peers ring it after every change to
// this context's memory, which costs them one load while nobody sleeps. For a
// bell of this process alone a goroutine relays, and each change then costs the
// peer a system call.
//
// # Trust
//
// Processes of one user can write to each other's memory anyway. Yet what is
// read from a peer's control memfd is checked each time against the real size
// of its mappings, and nothing this side relies on is read back from shared
// memory: a neighbour that scribbles there causes error completions. It can
// also let a waiter sleep on, by the bell, and delay a Close by a few seconds,
// by the busy word.
//
// # Memory order
//
// Every WRITE ends in a full fence, and an aligned WRITE of eight bytes is one
// atomic store, so flags may be written that way. Atomics are coherent with
// those of every process that maps the memory.
package shm
