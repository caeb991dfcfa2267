// Package wq holds what a queue pair has whatever moves its bytes: the table of
// its states, the queues of its requests, and the ring of its completions.
//
//	verbs    PostSend, PostRecv: checks arguments, states, depths
//	             |
//	provider SendQueue, RecvQueue: requests that wait
//	             |  moves bytes
//	         Completions --> Poll
//
// Package verbs checks what a caller passes, once for all providers. A provider checks again only
// two things: the bytes of a wire or of shared memory, which a peer could forge, and changes that
// verbs learns late: the queue pair is in ERR or closed, its queue is full.
//
// A [Ring] is the one queue of fixed size. The lock of its owner guards it. Only
// [Completions] may be used by several goroutines at once.
package wq
