//go:build linux

// Package wire carries what grun and the agent of a host say to each other, over
// one byte stream.
//
//	grun                                    agent, on its host
//	 |  == one stream of bytes: stdin and stdout of ssh ==  |
//	 |-- control ------------- messages ------------------>-|
//	 |-- stdin of rank 3 ------ bytes --------------------->|
//	 |<- stdout of rank 3 ----- bytes ----------------------|
//	 |-- program 0 ------------ bytes --------------------->|
//	 |== relay ===== the byte stream of another host =======|--- ssh ---> its agent
//	 |<- rendezvous ----------- a connection of a rank -----|
//	 |<- process manager of MPI, likewise ------------------|
//
// A [Session] divides the stream of bytes into these streams. The end that opens a stream
// begins it with a message that says its kind. grun opens all but the last two kinds. The
// agent opens a stream for each connection of a rank to the rendezvous or to the process
// manager, and passes bytes on.
//
// # Silence
//
// Both ends send pings on the control stream. An end that hears nothing for the peer timeout closes
// the session ([ErrSilent]). A stop of this process counts as one look at most. While grun stops
// the job for its user, the agents do not look.
//
// # Wire format
//
// Integers are little endian. A message is a header and a body:
//
//	offset  size
//	0       4     bytes in the body
//	4       2     magic, "GA"
//	6       1     version, 1
//	7       1     kind
//	8             body: the fields of a Message, in JSON
//
// The bytes of streams are those of yamux (github.com/hashicorp/yamux).
package wire
