// Package board holds the algorithms of collective calls between members that
// map each other's memory: ranks of one host, or of one process.
//
// Each member has a board, a block of memory that it writes and all others
// read. A call is one or more turns. In a turn a member posts what it has to
// say on a line of its own board, and reads the lines of others:
//
//	member 0's board                            member 1's board
//	left    the turn it has left                left
//	lines   | turn | seq | chain | 40 B |   lines
//	        | ...              32 of them   |
//	pockets | 32 of 1 KiB                   |   pockets
//	bays    | 4 of 64 KiB or more           |   bays
//	arrived, release (member 0's only)
//
// Turn k uses line k mod 32, for what does not fit there pocket k mod 32, and for what
// does not fit there either bay k mod 4. A turn's number, the call's chain and up to 40 bytes of data travel in
// one cache line. The number is stored last and looked at first, so all of the
// line is there when the number is.
//
// # Waiting
//
// Nobody waits but for what it needs: the root of a broadcast posts and leaves,
// a contributor to a reduction too. A line may be written again when all members
// have left the turn before, 32 turns ago, in which it was used, and a pocket or a
// bay in the same way. Whoever passes a gate, where all members meet, knows
// that all others left the turns before; where calls have no gates members say
// on their left word how far they are, once in 16 turns (2 if bays are in use)
// and ahead of every wait.
//
// Who runs ahead has its next line fetched to write it, which takes it out of
// the others' caches before the next call. Members with a core each that meet poll for
// each other's word alone before they look at all that may end the wait.
//
// Two members meet by reading each other's lines. More meet at a counter in the
// memory of member 0: the last one to come does what there is to do for all (it
// combines small vectors) and releases them, so that a call of ranks that share
// cores costs each of them one wake-up.
//
// # Large data
//
// What does not fit in a bay is cut into chunks of a turn each, so that copying
// in, combining and copying out overlap between members. Buffers that the
// others map (Place) are not copied: members post where they lie, and each
// combines its share of all inputs straight into all outputs. The call decides
// in its first turn, the same way at all members.
//
// # Edges
//
// A call along the edges of a graph concerns neighbors only, and the two ends of an
// edge alone know how long its block is: turns, which all members count, are not for
// it. [Edges] go by [Queues], one from each member to each that it has an edge to, with
// a count of its own and the lines and bays of a board:
//
//	member 0's queue to 1    taken | 32 lines | 4 bays    member 1 takes, and writes taken
//	member 1's queue to 0    taken | 32 lines | 4 bays
//
// Members put into all queues what there is room for, and take what has come, until
// all is done. Blocks that the others map are read where they lie, straight into the
// other's output, and their owner waits for that.
//
// # Order
//
// Operators are applied as ((a0∘a1)∘a2)∘... whatever the size and the number of
// members, so that results are the same bits in every run, and right for
// operators that do not commute.
//
// # Faults
//
// A member that finds another in a different call returns a [*Differs] before
// any of its data is used; what others wrote is checked before it serves as an
// index or a length, and a block of another length than expected is a
// [*LengthError]. A member that gives up while others use its memory where it lies
// waits until they have stopped, and those that come later find that it has gone
// ([ErrGone]). A Board, or a team's Queues, are of no more use after an error:
// the caller ends the team, and with it everyone's wait.
package board
