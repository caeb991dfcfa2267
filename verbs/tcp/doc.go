// Package tcp is the provider for ranks of different hosts on plain Ethernet, and for
// the loopback. A TCP connection carries the requests of one or two pairs of queue
// pairs of two devices. The target's progress applies them.
//
//	origin                                        target
//	PostSend -> send queue -> frames ==socket==>  checks key, bounds, rights;
//	                                              stores, loads, CPU atomics
//	Poll  <- completion  <-  ACK, NAK, data <==
//
// # Progress
//
// A device has one goroutine for all its connections: raw non-blocking sockets in one
// private epoll. A goroutine that polls a completion queue takes the progress token. It
// polls the epoll without blocking and serves the sockets that are ready. The device's
// goroutine does the same while the program computes. It does not spin, and an idle
// device uses no processor.
//
// The provider combines small unsignaled requests: it copies them into the connection's
// buffer. They leave when the program posts a signaled request, polls or waits, or when
// 64 KiB are there. Else they leave after [CombineDelay]. Larger payloads leave from
// the caller's memory and arrive in registered memory, without a copy between.
//
// # Promises
//
// A WRITE or SEND completes when the target has acknowledged its application. A READ or
// an atomic completes with its response. A WRITE of at most 128 bytes of aligned words
// stores its last word atomically, after all words before it. The peer's posted
// receives are credit. Without credit, a SEND or WRITE_WITH_IMM waits in the send queue
// of its origin, with the requests behind it. It costs the target nothing. A slow peer
// therefore slows its own queue pair only. A peer can make a device keep at most 64
// responses to READs and atomics. A send queue keeps inline payloads that cannot leave
// yet, at most SendDepth times MaxInline bytes. It also keeps canceled Announced
// WRITEs, whole.
//
// Two queue pairs that share a connection send frames in turn, of 1 MiB at most. An
// error of one does not end its neighbor. A third queue pair to the same device has its
// own connection.
//
// A connection that breaks ends the oldest request of each queue pair with
// RetryExceeded, and all later ones with Flushed. The device reports EventQPFatal. A
// clean close by the peer does the same. The provider resends nothing on a new
// connection.
//
// # Trust
//
// A queue pair's address holds a secret of 128 random bits, and travels over an
// authenticated exchange. A device cuts a dialer that does not prove that it knows the
// secrets of both ends. It reads no frame from such a dialer and tells it nothing.
// Frames are neither encrypted nor authenticated one by one: the network must keep
// strangers from reading and changing them. An authenticated peer reaches only the
// memory that its keys grant: the device checks every frame.
//
// # Connecting
//
// Each device listens on one port. Of two devices the one with the lower number dials.
// Of two queue pairs of one device, the one with the lower secret dials. The acceptor
// may get the hello before it knows its own peer. It probes the dialer's port to learn
// whether the dialer still listens. K is the acceptor's secret followed by the
// dialer's. Every MAC is HMAC-SHA256 over a label, both queue pair numbers and both
// nonces. Both ends keep a descriptor from RTR until they are connected: Modify fails
// if there is none.
//
//	dialer                                              acceptor
//	"PGTH" version 0 | acceptor QP | dialer QP |
//	    nonce D (32) | MAC(acceptor's secret, "hello")    -->   80 bytes
//	                <--   nonce A (32) | MAC(K, "challenge")    64 bytes
//	MAC(K, "proof")                                       -->   32 bytes
//	                <--   MAC(K, "welcome")                     32 bytes
//	frames                                               <->
//
// A second queue pair of the dialer joins the connection on stream 1; the first has stream
// 0. Both ends know both nonces, so two frames suffice:
//
//	JOIN  acceptor QP | dialer QP |
//	    MAC(acceptor's secret, "join") |
//	    MAC(K, "join proof")                              -->   80 bytes
//	                         <--   JOINED  MAC(K, "joined")     40 bytes
//	frames of both                                       <->
//
// A refused queue pair gets END instead, and dials. A queue pair that leaves sends END.
// Its stream is never used again: late frames would reach another queue pair.
//
// # Frames
//
// All numbers are little-endian. Every frame starts with eight bytes:
//
//	0    1     2   3     4
//	kind flags op  width length
//
// op is an atomic operation, or the status in a NAK. width is that of an atomic. length
// counts the payload behind the header, at most 1 MiB, or the bytes that a READ
// requests. Behind them, by kind:
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
//	13 END             this side has nothing more to do with the stream
//
// Requests of a stream are numbered in the order of their last frames, which carry the
// flag 1. Flag 2 requests an acknowledgement, flag 4 an atomic's old value. Flag 8
// marks a frame of stream 1. A frame that breaks these rules ends the connection with an
// error on both sides.
package tcp
