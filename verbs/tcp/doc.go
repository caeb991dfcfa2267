// Package tcp is the provider for ranks of different hosts on plain Ethernet,
// and for the loopback: a TCP connection carries what one or two pairs of queue pairs
// of two devices have to say to each other, and the target's progress applies it.
//
//	origin                                        target
//	PostSend -> send queue -> frames ==socket==>  checks key, bounds, rights;
//	                                              stores, loads, CPU atomics
//	Poll  <- completion  <-  ACK, NAK, data <==
//
// # Progress
//
// A device has one goroutine, however many connections: raw non-blocking
// sockets in one private epoll. Whoever polls a completion queue takes the
// progress token, looks at the epoll without blocking and serves what is
// ready; the goroutine does the same while the program computes. Nothing
// spins, and an idle device uses no processor.
//
// Small unsignalled requests are combined: they are copied into the
// connection's buffer and leave when a signalled request is posted, when
// anything is polled or waited for, when 64 KiB are there, and otherwise after
// [CombineDelay]. Larger payloads leave from the caller's memory and arrive in
// registered memory, without a copy between.
//
// # Promises
//
// A WRITE or SEND completes when the target has said that it was applied, a
// READ or an atomic with its response. The last word of a WRITE of at most 128
// bytes, aligned words, is one atomic store, behind everything before it, and the
// others are there with it. The peer's posted receives
// are credit: a SEND or WRITE_WITH_IMM for which there is none waits in the
// send queue of its origin, with the requests behind it, and costs the target
// nothing. A slow peer therefore slows its own queue pair only, and what a peer
// can make a device remember is bounded: 64 answers to READs and atomics.
// Inline payloads that cannot leave yet are kept, at most SendDepth times
// MaxInline bytes; so are Announced WRITEs that were canceled, whole.
//
// Two queue pairs that share a connection send frames in turn, of 1 MiB at most, and
// neither's errors end the other. A third one to the same device has its own connection.
//
// A connection that breaks ends the oldest request of each with RetryExceeded, the
// others with Flushed, and is told of by EventQPFatal; a clean close by the
// peer is no different. Nothing is resent on a new connection.
//
// # Trust
//
// A queue pair's address holds a secret of 128 random bits, and travels over
// an authenticated exchange. Who cannot prove that it knows the secrets of both
// ends is cut before anything else it says is looked at, and learns nothing.
// Frames are neither encrypted nor authenticated one by one: the network must
// keep others from reading and changing them. An authenticated peer reaches
// what its keys grant, and nothing else: every frame is checked.
//
// # Connecting
//
// Each device listens on one port. Of two devices the one with the lower number dials,
// of two queue pairs of one device that with the lower secret; the other may hear of it
// before it knows its own peer, and only knocks at the dialer's port to learn whether
// there is still someone. K is the acceptor's secret followed by the dialer's, and every
// MAC is HMAC-SHA256 over a label, both queue pair numbers and both nonces. Both keep a
// descriptor from RTR until they are connected: Modify fails where there is none.
//
//	dialer                                              acceptor
//	"PGTH" version 0 | acceptor QP | dialer QP |
//	    nonce D (32) | MAC(acceptor's secret, "hello")    -->   80 bytes
//	                <--   nonce A (32) | MAC(K, "challenge")    64 bytes
//	MAC(K, "proof")                                       -->   32 bytes
//	                <--   MAC(K, "welcome")                     32 bytes
//	frames                                               <->
//
// A second queue pair of the dialer joins the connection, on its lane 1, where the first
// has lane 0. Both nonces are known, so that two frames will do:
//
//	JOIN  acceptor QP | dialer QP |
//	    MAC(acceptor's secret, "join") |
//	    MAC(K, "join proof")                              -->   80 bytes
//	                         <--   JOINED  MAC(K, "joined")     40 bytes
//	frames of both                                       <->
//
// Who is turned away hears END instead, and dials. A queue pair that leaves says END, and
// nobody has its lane again: what was under way to it would be taken for another's.
//
// # Frames
//
// All numbers are little-endian. Every frame starts with eight bytes:
//
//	0    1     2   3     4
//	kind flags op  width length
//
// op is an atomic operation, or the status in a NAK; width is that of an
// atomic; length counts the payload behind the header, at most 1 MiB, or the
// bytes that a READ asks for. Behind them, by kind:
//
//	 1 WRITE           8 addr  16 key (16)                                payload
//	 2 WRITE_WITH_IMM  8 addr  16 key (16)  32 immediate                  payload
//	 3 SEND                                                               payload
//	 4 READ            8 addr  16 key (16)
//	 5 ATOMIC          8 addr  16 key (16)  32 operand  40 compare
//	 6 ABORT           the request in progress was canceled and ends here
//	 7 ACK             8 requests applied   16 receives posted
//	 8 NAK             8 the request that was refused
//	 9 DATA            of the oldest READ that has no response yet        payload
//	10 VALUE           8 of the oldest such atomic
//	11 JOIN            8 acceptor QP  12 dialer QP  16 MAC  48 MAC
//	12 JOINED          8 MAC
//	13 END             this side has nothing more to do with the lane
//
// Requests of a lane are numbered in the order of their last frames, which carry the
// flag 1; flag 2 asks for an acknowledgement, flag 4 for an atomic's old value, and
// flag 8 says that the frame is of lane 1.
// A frame that breaks these rules ends the connection with an error on both
// sides.
package tcp
