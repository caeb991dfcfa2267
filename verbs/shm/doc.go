//go:build linux

// Package shm is the provider for ranks of one host. It maps the peer's registered memory, and the
// goroutine that posts a request executes it. A WRITE is a copy, an atomic is an instruction of
// this CPU. The peer's program takes no part in WRITE, READ and atomics. Nor does any thread of its
// process, unless the memory lies in its Go heap (see Heap memory).
//
//	process A                                    process B
//	QP.PostSend ── copy, CPU atomic ───────────> memory registered by B
//	control memfd of A <──── reads ───────────── CQ.Poll takes messages in
//	  CQ.Poll ────── reads ────────────────────> control memfd of B
//	doorbell bit and bell of B <── set by A ──── and the other way round
//
// # The control memfd
//
// Each context has one small memfd that its peers map. Its owner alone writes
// it, except doorbells and bell:
//
//	header      magic, token, probe, bell, doorbell bits: "QP i, look at your peer"
//	MR table    one line per registration: key, memfd, offset, length, rights
//	QP blocks   connection word, receives posted, and the ring of messages
//	            that this QP sends
//
// control.go has the offsets, ring.go the records, address.go the QP address.
//
// # Messages
//
// A message (SEND, or the notice of a WRITE_WITH_IMM) lies in the *sender's*
// ring. The receiver copies it out when it polls, and publishes its progress in
// its own block. So a peer that is late, reset or dead never writes into memory
// with a new use. The receiver also publishes the length of each receive that
// it posts. So the sender knows before it starts whether there is one and
// whether the message fits. A message larger than the ring travels in pieces.
//
// A request that cannot go on waits in the QP's send queue with the later ones
// behind it. It waits for room in the ring, a receive of the peer, the peer's
// connection or the end of SQD. Poll and Wait go on with it once the peer has
// rung the doorbell. If the program calls neither for a millisecond, a
// goroutine does. The receiver has no such goroutine: it takes messages in when
// it polls. So a sender can be ahead of it by one ring at most.
//
// # Heap memory
//
// No other process can map the Go heap. The poster copies more than a few hundred bytes of heap
// memory with process_vm_readv and process_vm_writev, where the system allows that. A probe at
// the first use of a peer's heap moves real bytes both ways. Everything else goes by the peer's
// CPU. The poster puts a request into its ring, and waits for the response in the peer's ring.
// Later requests of the QP wait behind it. These copies may tear a word in two, and no atomic is
// among them: atomics, and accesses of at most 512 bytes, always go by the peer's CPU. While
// peers may reach heap memory, a goroutine of the owner responds.
//
// # Connection
//
// Each QP has a random nonce and an epoch that counts its RESETs. At RTR a QP
// publishes the nonce and epoch of the QP to which it is bound. Requests start
// once both sides are bound to each other. A peer that leaves that epoch ends
// the connection: the next request, or the first that waits, completes with
// RetryExceeded. After the peer's ERR, Close or death, the connection ends
// without a request as well, with EventQPFatal. A pidfd reports a death within
// milliseconds. This side first takes in all messages that had arrived. A WRITE
// to a process may still succeed shortly after its death. A stopped process is
// not dead: its memory can still be read and written.
//
// # Neighbors
//
// The address of a context suffices to map its registered memory ([Context.Neighbor]): no QP is
// needed, and its process takes no part. The memory of the bell is mapped first, and the control memfd
// once a key is used. The mapping process checks the same as for a QP. A neighbor without a QP is not
// watched for its death.
//
// # Registration
//
// Closing an MR invalidates its key for every later request. It then waits for
// the requests that peers are executing: each QP publishes in its block whether
// it executes one. A request still counts when the connection has ended, or the QP is closed. A context caches its views of the peer's table and checks
// each again with one load. Mapped memory stays mapped until the context
// closes.
//
// # Waiting
//
// Ranks bring a bell that lies in a memfd. Peers ring it after every change to
// this context's memory. That costs them one load while no goroutine sleeps on
// it. For a bell outside a memfd, a goroutine relays the rings; each change
// then costs the peer a system call.
//
// # Trust
//
// Processes of one user can write to each other's memory anyway. Yet a context
// checks each value from a peer's control memfd against the real size of its
// mappings. It reads back no value of its own from shared memory. So a peer
// that scribbles there causes error completions. Through the bell, the peer can
// also keep a waiter asleep. Through the busy word, it can delay a Close by a
// few seconds.
//
// # Memory order
//
// Every WRITE ends in a full fence. An aligned WRITE of eight bytes is one
// atomic store, so a WRITE may set a flag. Atomics are coherent with those of
// every process that maps the memory.
package shm
