// Package message holds the algorithms of collective calls between members
// that only exchange messages: other hosts, or one host where nothing is
// mapped. (Members that map each other's memory use package board.)
//
//	collectives         chooses an Algorithm, fills Args
//	     |
//	message             plain functions: func(ctx, Carrier, *Args) error
//	     |
//	Carrier             moves bytes between two members, in order
//
// Data is type-erased: bytes, the size of an element and a Combine. Each
// algorithm is a plain function in a file of its own, runs in the caller's
// goroutine at every member, starts no other, and keeps no state: a call takes
// its memory from Args.Scratch and has no use for it afterwards. Whatever
// stands in its file's header (rounds, bytes, order of combination) the tests
// compare with what a carrier counts. Algorithms lists them all as data, with
// what each needs, so that choosing one is data too.
//
// # Cost
//
// Costs are those of the one-port model: a member sends one message and
// receives one at the same time, a round is one such step, and the bytes are
// those that pass one after the other on the longest path of messages. In them
// n is the number of members, m the bytes of the longest buffer of the call
// (the whole vector, or all blocks together), L = ceil(log2 n), and p the
// largest power of two that is not above n. Where n is no power of two, the
// first 2(n-p) members form pairs of which one stands for both (pairs.go).
//
// # Order of combination
//
// An operator is associative. If it does not commute, the result is
// a0∘a1∘...∘a(n-1) in the members' order. If it does, an algorithm may combine
// in any order, unless Args.Ordered asks for ((a0∘a1)∘a2)∘... exactly, which
// gives the same bits whatever the algorithm: those that can are marked.
//
// # Hosts
//
// Where some members share a host, two-level algorithms (twolevel_*.go) do one
// thing within hosts and another among their leaders, each by an algorithm of one
// level that Hosts name, or on a board. Of H hosts, only the leaders' messages pass
// between two.
//
// # Waiting
//
// Carrier.Send may wait until its receiver takes the bytes. No algorithm has a
// cycle of members that wait for each other even if every Send does: members
// that send to each other use Exchange.
package message
