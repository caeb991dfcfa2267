//go:build linux

// Package tcp is the provider for ranks of different hosts on plain Ethernet, and for
// the loopback. A TCP connection carries the requests of queue pairs of two devices. The
// target's progress applies them.
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
// 64 KiB are there. Else they leave after [CombineDelay]. A READ or an atomic that fetches
// waits so while an earlier one awaits its response, and leaves at once otherwise. Larger payloads leave from
// the caller's memory and arrive in registered memory, without a copy between.
//
// # Promises
//
// A WRITE or SEND completes when the target has acknowledged its application. A READ or an atomic completes
// with its response. A WRITE of at most 128 bytes of aligned words stores its last word atomically, after all
// words before it. The peer's posted receives are credit. Without credit, a SEND or WRITE_WITH_IMM waits in
// the send queue of its origin, with the requests behind it. It costs the target nothing. A slow peer
// therefore slows its own queue pair only. A peer can make a device keep at most 64 responses to READs and
// atomics. It keeps 64 KiB for each of them that accumulates or reads blocks. A dialer that opens streams and
// does not read the responses loses its connection. A send queue keeps inline payloads that cannot leave yet,
// at most SendDepth times MaxInline bytes. It also keeps canceled Announced WRITEs, whole.
//
// A device commits memory with a [driver.Demand] ahead of a peer's access, at least twice as much as before. It has
// [driver.Extents] made ahead of the first access. If it gets no memory, the request ends with RemoteOperation, and the
// queue pair with it.
//
// Each queue pair is a stream of a connection. Up to Config.Streams of them share one,
// two by default. They send frames in turn, of 1 MiB at most. An error of one does not
// end its neighbors. All queue pairs of two devices share one lock, whatever their
// connection.
//
// A connection that breaks ends the oldest request of each queue pair with
// RetryExceeded, and all later ones with Flushed. The device reports EventQPFatal. A
// clean close by the peer does the same. The provider resends nothing on a new
// connection. A device resets a connection whose peer host owed an acknowledgement for
// the peer timeout. So the other end finds out where only one direction was cut.
//
// # Trust
//
// A queue pair's address holds a secret of 128 random bits, and travels over an
// authenticated exchange. A device cuts a dialer whose first frames do not prove that
// it knows the secret of one of the device's queue pairs. It applies no frame of such a
// dialer and tells it nothing. A dialer proves for each stream that it knows the
// secrets of both ends, and the acceptor proves the same. Without TLS, frames are
// neither encrypted nor authenticated one by one: the network must keep strangers from
// reading and changing them. An authenticated peer reaches only the memory that its keys grant: the
// device checks every frame.
//
// With Config.TLS, the handshake below and all frames travel within TLS 1.3. The dialer
// is the client. A stranger then gets the device's certificate and alerts, and nothing
// else. Bytes that were changed, repeated or left out end the connection with a
// [TLSError], and so does an end of the connection without close_notify. A queue pair
// that is connected with itself needs no TLS. Two devices of which one uses TLS refuse
// each other at RTR. With TLS, the receipt of frames allocates a few bytes.
//
// # Connecting
//
// Each device listens on one port. An address lists all addresses of its host that peers
// may dial. The dialer tries those in its own subnets first. Of two devices the one with the lower number dials.
// Of two queue pairs of one device, the one with the lower secret dials. The other side
// probes the dialer's port to learn whether the dialer still listens. Both ends keep a
// descriptor from RTR until they are connected: Modify fails if there is none.
//
// The first frame of each end is a HELLO with a nonce. Then the dialer opens streams, the first one
// like every later one. K is the acceptor's secret followed by the dialer's. Every MAC is
// HMAC-SHA256 over the kind of its frame, the number of the stream, both queue pair numbers and the
// dialer's nonce. But for OPEN, it also covers the acceptor's nonce. With TLS they cover keying
// material of the TLS connection, too.
//
//	dialer                                                          acceptor
//	HELLO  nonce D                                           -->
//	OPEN   acceptor QP | dialer QP | MAC(acceptor's secret)  -->
//	                                 <--  HELLO  nonce A
//	                                 <--  OPENED  MAC(K)
//	PROOF  MAC(K)                                            -->
//	frames                                                   <->
//
// Each HELLO is sent once. The acceptor sends its own after the first correct OPEN. It
// may get an OPEN before its queue pair knows its peer. It keeps four of them for each
// queue pair, and 128 connections with such OPENs alone. It cuts the oldest connection
// beyond, and the dialer dials again. A refused OPEN gets END, and the dialer tries again until its time is
// over. A queue pair that leaves its stream sends END. The number of a stream is never
// used again, so a receiver drops late frames of a stream that has ended.
//
// # Frames
//
// All numbers are little-endian. Every frame starts with eight bytes:
//
//	0           1       4
//	kind+flags  length  stream
//
// The kind is in the lower five bits of the first byte, the flags in the upper three. The length is
// that of the payload behind the header, at most 1 MiB. The lower byte of an ATOMIC's length is its
// operation, the next its width. That of a NAK is the status. Behind them, by kind:
//
//	 1 WRITE           8 addr  16 key (16)                                payload
//	 2 WRITE_WITH_IMM  8 addr  16 key (16)  32 immediate                  payload
//	 3 SEND                                                               payload
//	 4 READ            8 addr  16 key (16)  32 bytes wanted
//	 5 ATOMIC          8 addr  16 key (16)  32 operand  40 compare
//	 6 ACCUMULATE      8 addr  16 key (16)  32 operation, width, 34 runs  36 bytes  payload
//	 7 WRITE_BLOCKS    8 addr  16 key (16)  32 runs              36 bytes  payload
//	 8 READ_BLOCKS     8 addr  16 key (16)  32 runs              36 bytes  payload
//	 9 ABORT           the request in progress was canceled and ends here
//	10 ACK             8 requests applied   16 receives posted
//	11 NAK             8 the request that was refused
//	12 DATA            of the oldest READ, READ_BLOCKS or ACCUMULATE without a response payload
//	13 VALUE           8 of the oldest such ATOMIC
//	14 HELLO           8 nonce (32)  40 "PGTH"  44 version 6
//	15 OPEN            8 MAC (32)  40 acceptor QP  44 dialer QP
//	16 OPENED          8 MAC (32)
//	17 PROOF           8 MAC (32)
//	18 END             this side has nothing more to do with the stream
//
// Requests of a stream are numbered in the order of their last frames, which carry the
// flag 1. Flag 2 requests an acknowledgement, flag 4 the old value of an ATOMIC, or those of an
// ACCUMULATE. The payload of an ACCUMULATE has its runs, if any, and an operand for each of its bytes' elements; a load
// has no operands. That of a WRITE_BLOCKS or READ_BLOCKS begins with its runs (package internal/blocks), whose blocks have bytes in all; those of a
// WRITE_BLOCKS follow. The dialer
// numbers the streams of a connection from 0. A frame that breaks these rules ends the
// connection with an error on both sides.
package tcp
