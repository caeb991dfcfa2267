// Package message holds the algorithms of collective calls between members that
// only exchange messages: members of several hosts, or of one host without mapped
// memory. (Members that map each other's memory use package board.)
//
//	collectives         chooses an Algorithm, fills Args
//	     |
//	message             plain functions: func(ctx, Transport, *Args) error
//	     |
//	Transport           moves bytes between two members, in order
//
// Data is type-erased: bytes, the size of an element and a Combine. Each
// algorithm is a plain function in a file of its own. It runs in the caller's
// goroutine at every member, starts no other, and keeps no state. A call takes
// its memory from Args.Scratch and does not need it afterward. Tests compare the
// claims of a file's header (rounds, bytes, order of combination) with the counts
// of a transport. Algorithms lists all of them as data, with their needs, so that
// choosing one is data, too.
//
// # Cost
//
// Costs are those of the one-port model. A member sends one message and receives one at the same
// time; that is a round. The bytes are those on the longest path of messages, one after another. In
// them n is the number of members. m is the number of bytes of the longest buffer of the call: the
// whole vector, or all blocks together. L = ceil(log2 n), and p is the largest power of two that is
// not above n. If n is no power of two, the first 2(n-p) members form pairs; one member of a pair
// stands for both (pairs.go).
//
// # Order of combination
//
// An operator is associative. If it does not commute, the result is
// a0∘a1∘...∘a(n-1) in the members' order. If it does, an algorithm may combine in
// any order, unless Args.Ordered asks for ((a0∘a1)∘a2)∘... exactly. That order
// gives the same bits in every algorithm; those that can are marked.
//
// # Hosts
//
// If some members share a host, two-level algorithms (twolevel_*.go) do one thing
// within hosts and another among their leaders. Each part uses an algorithm of one
// level that Hosts name, or a board. Of H hosts, only the leaders' messages pass
// between two.
//
// # Waiting
//
// Transport.Send may wait until its receiver takes the bytes. No algorithm has a
// cycle of members that wait for each other, even if every Send waits: members
// that send to each other use Exchange.
package message
