// Package shm is the provider for ranks of one host. It maps the peer's
// registered memory and executes a request where it is posted: a WRITE is a
// copy, an atomic is an instruction of this CPU. The peer's program takes no
// part in WRITE, READ and atomics, and neither does any thread of its process.
//
//	process A                                    process B
//	QP.PostSend ── copy, CPU atomic ───────────> memory registered by B
//	control memfd of A  <──── reads ──────────── drains A's ring
//	  reads ────────────────────────────────────> control memfd of B
//	doorbell bit, futex bell of B <── set by A
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
// connected, or the QP is in SQD. Poll goes on with it when the peer's doorbell
// says so.
//
// # Connection
//
// Each QP has a random nonce and an epoch that every RESET moves. At RTR a QP
// publishes which nonce and epoch it is bound to; requests start once both
// sides are bound to each other. A peer that leaves that epoch (RESET, ERR,
// closed, dead) ends the connection: the next request, or the first that
// waits, completes with RetryExceeded. Deaths are seen through a pidfd.
//
// # Trust
//
// Processes of one user can write to each other's memory anyway. Yet what is
// read from a peer's control memfd is checked each time against the real size
// of its mappings, and nothing this side relies on is read back from shared
// memory: a neighbour that scribbles there causes error completions.
//
// # Memory order
//
// Every WRITE ends in a full fence, and an aligned WRITE of eight bytes is one
// atomic store, so flags may be written that way. Atomics are coherent with
// those of every process that maps the memory.
package shm
