// Package board holds the algorithms of collective calls between members that
// map each other's memory: ranks of one host, or of one process.
//
// Each member has a board, a block of memory that it writes and all other members
// read. A call is one or more turns. In a turn a member posts its data on a line
// of its own board, and reads the lines of other members:
//
//	member 0's board                            member 1's board
//	left    the turn it has left                left
//	lines   | turn | seq | chain | 40 B     |   lines
//	        | ...             128 of them   |
//	small   | 32 buffers of 1 KiB           |   small
//	units   | 32 units of 8 KiB or more     |   units
//	waiters  a bit for each member that waits for left
//	arrived, release (member 0's only)
//
// Turn k uses line k mod 128. Data that does not fit there goes to small buffer
// k mod 32. Longer data goes to 1, 2, 4 or 8 units, which the line names. So a member can be
// 128 turns ahead of its readers with the shortest data, 32 with short data, and 4 with the longest. In a scan only
// the next member reads a line, and member 0 can be 240 turns ahead of the last one. A turn's number, the call's
// chain and up to 40 bytes of data travel in one cache line. The writer stores
// the number last and a reader loads it first, so that the whole line is there once
// the number is.
//
// # Waiting
//
// A member waits only for data that it needs: the root of a broadcast posts and leaves, and so does a contributor to
// a reduction. A member may write a line again when its readers have left the last turn in which they read it. In a
// pipeline, that is two turns after the turn in which it was written. The same holds for a small buffer and for
// units. A member that passes a gate, where all members meet, knows that all other members have left the turns
// before. In calls without gates members post on their left word how far they are: ahead of every wait, and once in
// 64 turns. They do so once in 16 turns if data does not fit on lines. With data of 2, 4 or 8 units, that is once in
// 8, 4 or 2 turns. They wake the members that wait for that and have set a bit on their board (waiters.go).
//
// Turns are stored by atomics.StoreRelease, which takes no locked instruction on amd64. The
// look at a bell, or at the waiters, may so overtake the store. A member that sleeps at that very moment
// sees the turn after a pause of a millisecond ([wait.Stored], ADR 84).
//
// A member that runs ahead has the processor fetch its next line for writing. That
// takes the line out of the other members' caches before the next call. Members with
// a core each that meet first poll for each other's word alone, and only then for
// everything that may end the wait.
//
// Two members meet by reading each other's lines. Up to 9 members meet at a counter
// in the memory of member 0. The last one to come does the work of all (it
// combines small vectors) and releases them. So a call costs each rank one
// wake-up if ranks share cores. Of more members, the last one to come wakes member 0, which
// does the work.
//
// # Connections
//
// A member finds another member's board when it first reads the board or wakes the member. So
// a reduction of short vectors connects member 0 to all others, and them to member 0.
//
// # Large data
//
// A member cuts data that does not fit in a large buffer into chunks of a turn
// each. So copying in, combining and copying out overlap between members. Buffers
// that the other members map (Place) are not copied: members post their places,
// and each combines its share of all inputs straight into all outputs. The call
// decides on that in its first turn, the same way at all members.
//
// # Edges
//
// A call along the edges of a graph concerns neighbors only. Only the two ends of an edge know the
// length of its block. So such a call cannot use turns, which all members count. [Edges] use
// [Queues]: one from each member to each member that it has an edge to. A queue has a count of its
// own and the lines and large buffers of a board:
//
//	member 0's queue to 1    taken | 32 lines | 4 large    member 1 takes, and writes taken
//	member 1's queue to 0    taken | 32 lines | 4 large
//
// Members fill all queues while they have room, and take all that has come, until
// the call is complete. A member reads blocks that it maps in place, straight into
// its output, and their owner waits for that.
//
// # Order
//
// Operators are applied as ((a0∘a1)∘a2)∘... for every size and number of members.
// So results are the same bits in every run, and right for operators that do not
// commute.
//
// # Faults
//
// A member that finds another member in a different call returns a [*Differs]
// before it uses any of its data. It checks a peer's word before using it as an
// index or a length, and a block of an unexpected length is a [*LengthError]. A
// member that gives up while other members use its memory in place waits until
// they have stopped. Members that come later find that it has gone ([ErrGone]).
// After an error a Board, or a team's Queues, are of no more use. The caller ends
// the team, and with it the waits of all members.
package board
