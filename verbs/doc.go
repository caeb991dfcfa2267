// Package verbs is the checked, ibverbs-shaped interface to every provider:
// devices, protection domains, memory regions, queue pairs, completion queues.
//
//	Provider --Open--> Context --AllocPD--> PD --RegMR----> MR
//	                      |                  +--CreateQP--> QP
//	                      +------CreateCQ--> CQ <-completions-+
//
// A provider moves bytes; this package keeps a caller's mistakes from it. The
// package checks state and queue depth before a provider sees a work request.
// It also checks the request's segments, local keys, lengths and atomic
// operands. The target checks remote key, bounds and rights, and the [Status]
// of a completion reports its result.
//
// # Lifecycle
//
// A QP goes RESET, INIT, RTR, RTS; [QP.Connect] takes it there once the peers
// have exchanged [QP.Address]. A failed request moves it to ERR, where
// everything outstanding completes as [Flushed]; Modify to RESET and Connect
// bring it back. Objects are closed in the opposite order of creation. A PD
// with regions or queue pairs refuses to close with an [InUseError]; so does a
// CQ to which queue pairs complete.
//
// # Kinds of calls
//
// All calls are local: none needs a call of the peer's. PostSend and PostRecv post requests and
// return. The provider owns the memory of a request until its completion, which [CQ.Poll] returns.
// A call that can wait takes a context.
//
// # Costs
//
// Posting takes one uncontended lock of this package's, polling none; neither
// allocates unless it fails. All methods may be called from any goroutine.
//
// Package verbs knows no ranks: the layers above decide which ranks connect.
package verbs
