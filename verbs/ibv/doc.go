// Package ibv is the provider for real RDMA devices, InfiniBand and RoCE, in
// hardware or in software, through libibverbs.
//
//	PostSend -> flat requests --one call--> chain -> ibv_post_send -> NIC
//	Poll     <- completions   <--one call-- ibv_poll_cq            <- NIC
//	bell     <- goroutine in the netpoller <- completion channel   <- NIC
//
// It is built with the tag ibverbs, which needs a C compiler and libibverbs.
// Without the tag, calls report the missing tag, and binaries stay static.
//
// # Crossing into C
//
// A shim of a few functions takes posted requests as an array of flat structs.
// It hands them to the device as one chain. Polling takes completions in
// batches. C keeps no Go pointer: registered memory travels as a number. Memory
// of the Go heap is pinned as long as it is registered.
//
// # Promises
//
// Every segment names registered memory by its local key, except those of
// [driver.Inline] requests. The completion of a WRITE says that the target's
// device has the data ([driver.WriteInfo.Applied] is false). The completion of
// a READ behind it, or a message, says that memory has the data. Atomics of the
// device and of the CPU must not be mixed on one word without
// [driver.AtomicInfo.Coherent].
//
// A peer's plain WRITE, READ or atomic reaches no goroutine here and rings no
// bell ([driver.WriteInfo.Silent]). An operation that shall wake a rank ends in
// a SEND or a WRITE_WITH_IMM. A poll that finds a completion rings the bell. So
// does the completion channel of an armed queue ([driver.Armer]). A poll that
// finds nothing arms the queue while a goroutine is about to sleep on the bell.
// So busy queues raise no events, and an idle one costs nothing.
//
// # Ends
//
// The provider moves a queue pair that breaks to ERR in the device, which then
// flushes its requests. The provider posts a marker behind them: its completion
// shows which unsignaled requests had succeeded. Later requests do not reach
// the device; the provider flushes them last. It resets a queue pair that the
// device does not flush within two seconds. The device then touches none of its
// memory, and the provider flushes the remaining requests itself.
//
// The device gives up after a number of retries. Together they last
// [driver.Attr.Timeout], rounded up to a value of the device's timer. Some
// devices lose a request altogether. So a watchdog checks queue pairs with
// outstanding signaled requests. It breaks one without progress for twice that
// time, if it does not wait for a receive of its peer. The oldest request then
// ends with RetryExceeded.
//
// A request that the peer refused, or to which it did not respond, has an error that says what to do:
// [driver.ErrLost], [driver.ErrInvalid] or [driver.ErrAccess]. After a reset, packet
// numbers lie ahead of those of the earlier connection, so that its late packets have
// no effect.
//
// # Address
//
// A queue pair's address is 36 bytes, little-endian:
//
//	0     4       6   7     8   12  16  18   19   20
//	magic version MTU reads QPN PSN LID link zero GID
//
// MTU is the code of enum ibv_mtu. The number of READs and atomics that may be outstanding toward
// this end is in reads. The link is 1 for InfiniBand and 2 for Ethernet. An address is no secret
// that protects the queue pair: the network must keep strangers away from the device.
package ibv
