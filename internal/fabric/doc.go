// Package fabric turns ranks into connected peers. It picks the provider that
// reaches a rank and connects on first use. It keeps track of operations under
// way, makes progress for goroutines that wait, and knows which ranks are gone.
//
//	window, rpipe, runtime
//	        |  Remote: Put Read Atomic Flag Flush Order
//	     fabric ------------------ Control (messages through the launcher)
//	        |  PostSend, Poll, Map
//	      verbs
//
// Lifecycle: [New] opens the devices and the heap. [Fabric.Register] publishes
// memory under a name. [Fabric.Resolve] finds the memory that another rank
// published under it, and connects to that rank if need be. [Fabric.Close]
// ends all connections and gives all memory back.
//
// # Two paths
//
// If this process maps a peer's memory, callers load and store there directly:
// Remote.Mem is that memory. Every other operation is a work request on the queue
// pair to the peer. A [Put] describes a write, and [Remote.Start] starts it. Up to
// the switch point the CPU copies a write as it posts it (FMA). Above it the bytes
// leave from the caller's slice (bulk), and the call waits until they have.
//
// # Control messages
//
// Two services carry out requests of other ranks, in JSON since they run once per peer or
// region. "connect" exchanges the addresses of queue pairs, and "region" returns
// the address and key of a name. A rank keeps one outgoing queue pair for each
// peer that it connected to. It keeps one incoming for each that connected to it.
package fabric
