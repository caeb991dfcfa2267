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
// two things. A peer could forge the bytes of a wire or of shared memory. And verbs learns late
// that a queue pair is in ERR or closed, or that its queue is full.
//
// A [Ring] is the one queue of fixed size. The lock of its owner guards it. Only
// [Completions] may be used by several goroutines at once.
package wq
