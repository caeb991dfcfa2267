// Package fabric turns ranks into connected peers. It picks the provider that
// reaches a rank, connects on first use, keeps track of what is under way,
// makes progress for whoever waits, and knows which ranks are gone.
//
//	window, rpipe, runtime
//	        |  Remote: Put Read Atomic Flag Flush Order
//	     fabric ------------------ Control (messages through the launcher)
//	        |  PostSend, Poll, Map
//	      verbs
//
// Lifecycle: [New] opens the devices and the heap. [Fabric.Register] publishes
// memory under a name; [Fabric.Resolve] finds the memory that another rank
// published under it, and connects to that rank if need be. [Fabric.Close]
// ends everything.
//
// # Two paths
//
// A peer whose memory can be mapped is reached by loads and stores: Remote.Mem
// is its memory, and callers use it directly. Every other operation is a work
// request on the queue pair to that peer. A [Put] describes a write, and
// [Remote.Start] starts it. Up to the switch point a write is copied as it is
// posted (FMA); above it the bytes leave from the caller's slice (bulk), and the
// call waits until they have.
//
// # Control messages
//
// Two services answer other ranks, in JSON since they run once per peer or
// region: "connect" (queue pair addresses change hands) and "region" (name to
// address and key). A rank keeps one outgoing queue pair for each peer that it
// has talked to and one incoming for each that has talked to it.
package fabric
