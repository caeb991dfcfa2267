// Package ibv is the provider for real RDMA devices, InfiniBand and RoCE, in
// hardware or in software, through libibverbs.
//
//	PostSend -> flat requests --one call--> chain -> ibv_post_send -> NIC
//	Poll     <- completions   <--one call-- ibv_poll_cq            <- NIC
//	bell     <- goroutine in the netpoller <- completion channel   <- NIC
//
// It is built with the tag ibverbs, which needs a C compiler and libibverbs.
// Without the tag the package says what is missing, and binaries stay static.
//
// # Crossing into C
//
// A shim of a few functions takes what is posted as an array of flat structs
// and hands it to the device as one chain; polling takes completions in
// batches. C keeps no Go pointer: registered memory travels as a number, and
// memory of the Go heap is pinned as long as it is registered.
//
// # Promises
//
// Every segment names registered memory by its local key, except those of
// [driver.Inline] requests. A completed WRITE says that the target's device
// has it ([driver.WriteInfo.Applied] is false): a READ behind it, or a
// message, tells that memory has it. Atomics of the device and of the CPU must
// not be mixed on one word unless the device says that they are coherent.
//
// A peer's plain WRITE, READ or atomic is seen by nobody here and rings no bell
// ([driver.WriteInfo.Silent]): what shall wake a rank ends in a SEND or
// a WRITE_WITH_IMM. A completion rings the bell when it is polled, and through
// the completion channel where the queue was armed for it ([driver.Armer]), as
// every look at it does that finds nothing while someone is about to sleep on
// the bell: busy queues raise no events, and an idle one costs nothing.
//
// # Ends
//
// A queue pair that breaks is moved to ERR in the device, which then flushes
// what it holds; a marker behind that tells which unsignalled requests had
// succeeded. What is posted from then on does not reach the device and is
// flushed behind the rest. A device that does not flush within two seconds is
// reset, after which it touches no memory of ours, and the rest is flushed
// without it.
//
// The device gives up after a number of retries that together last
// [driver.Attr.Timeout], rounded up to what it can express. For devices that lose
// a request altogether, a watchdog looks while signalled requests are
// outstanding: one that has made no progress for twice that time, and does not
// wait for a receive of its peer, ends as RetryExceeded.
//
// # Address
//
// A queue pair's address is 36 bytes, little-endian:
//
//	0     4       6   7     8   12  16  18   19   20
//	magic version MTU reads QPN PSN LID link zero GID
//
// MTU is the code of enum ibv_mtu, reads the number of READs and atomics that
// may be outstanding towards this end, link 1 for InfiniBand and 2 for Ethernet.
// It holds no secret worth the name: whoever can send to the device's queue pairs
// is kept out by the network.
package ibv
