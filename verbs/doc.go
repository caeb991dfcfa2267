// Package verbs is the checked, ibverbs-shaped interface to every provider:
// devices, protection domains, memory regions, queue pairs, completion queues.
//
//	Provider --Open--> Context --AllocPD--> PD --RegMR----> MR
//	                      |                  +--CreateQP--> QP
//	                      +------CreateCQ--> CQ <-completions-+
//
// A provider moves bytes; this package is what keeps a caller's mistake from
// reaching it. Before a provider sees a work request, its state, queue depth,
// segments, local keys, lengths and atomic operands have been checked. What
// only the target knows (remote key, bounds, rights) the target checks, and
// the answer is the [Status] of a completion.
//
// # Lifecycle
//
// A QP goes RESET, INIT, RTR, RTS; [QP.Connect] takes it there once the
// peers have exchanged [QP.Address]. A failed request moves it to ERR, where
// everything outstanding completes as [Flushed]; Modify to RESET and Connect
// bring it back. Objects are closed in the opposite order of creation: a PD
// with regions or queue pairs, and a CQ that queue pairs complete to, refuse
// to close with an [InUseError].
//
// # Costs
//
// Posting takes one uncontended lock of this package's, polling none; neither
// allocates unless it fails. All methods may be called from any goroutine.
//
// verbs knows no ranks: who talks to whom is the business of the layers above.
package verbs
