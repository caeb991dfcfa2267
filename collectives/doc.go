// Package collectives holds the calls that all ranks of a team make together to
// move and combine data: what MPI calls collective operations, typed, on teams,
// with any element type of fixed size.
//
//	err := collectives.AllReduce(ctx, world, collectives.Sum[float64](), in, out)
//
//	          Broadcast     Reduce      AllReduce     Gather      AllGather    Scatter     ReduceScatter  AllToAll
//	rank 0    a -> a        a -> a+b+c  a -> a+b+c    a -> a b c  a -> a b c   abc -> a    a b c -> a+..  abc -> adg
//	rank 1      -> a        b           b -> a+b+c    b           b -> a b c       -> b    d e f -> b+..  def -> beh
//	rank 2      -> a        c           c -> a+b+c    c           c -> a b c       -> c    g h i -> c+..  ghi -> cfi
//
// Those that combine take an [Op]: [Sum], [Prod], [Min], [Max], [And], [Or],
// [Xor], [MinLoc], [MaxLoc], or one by [NewOp]. Scan and ExScan combine what the
// ranks up to this one have. The forms with a V have blocks of different lengths
// ([Blocks]). NeighborAllGather and NeighborAllToAll exchange blocks along the
// edges of a [Cart] or [Graph].
//
// # Three ways to make a call
//
//	AllReduce(ctx, t, op, in, out)                   blocking
//	Start(ctx, t, AllReduceCall(op, in, out))        goes on while the program computes; see [Request]
//	Plan(ctx, t, AllReduceCall(op, in, out))         checked once, made often; see [Planned]
//
// All members make the calls of a team in the same order. They run one after the
// other: one behind a call that was started waits for it. Blocking calls
// allocate nothing once the first of their kind has been made.
//
// # What carries them
//
//	collectives            checks arguments, chooses a way, keeps the order
//	   |            \
//	internal/board   internal/message       one algorithm per file
//	   |              |
//	mapped memory    messages: short ones eagerly, others by pipes (package rpipe) or rendezvous
//
// Where all members of a team map each other's memory, they meet on boards, small
// pieces of memory that each writes and all read, and along the edges of a graph in
// queues, one each way between two neighbors; what is long and lies in the heap
// ([Alloc]) is read and written in place, the rest goes through one copy.
// Else an algorithm of messages is chosen by the length of the data, the number of
// members, their hosts and what the operator allows; among members on several
// hosts, those of each still meet on a board of theirs where the algorithm has a
// part for them. GRUN_EXPLAIN=collectives has rank 0 say, once for each shape of a
// call, which one and why; [WithAlgorithm] takes another one, and
// GRUN_COLLECTIVES=messages does without boards. What grun tune measured on this
// machine comes before the built-in rules: GRUN_TUNED names its file for a job,
// and is off for one that does without. A file that is no good is a warning.
//
// # Order of combination
//
// The result is a0∘a1∘...∘a(n-1) in the order of ranks. Operators that commute are
// applied in any order, which rounding shows; [Deterministic] makes it
// ((a0∘a1)∘a2)∘... in every case.
//
// # Who owns the slices
//
// Input is read and never written, output is written and may hold anything after an
// error. Both are the call's until it returns, or until its request has ended. A
// return says that this member's part is done, and not that others have returned.
//
// # Errors
//
// Arguments are checked before anyone else learns of the call: [ErrLength],
// [ErrOverlap], [ErrOp], [ErrType], [ErrRange], [ErrAlgorithm] leave the team as it
// was. Members whose calls differ, in the collective, the root, the length, the
// type, the operator or an option, get [runtime.ErrMismatch] and a
// [runtime.MismatchError] that names two of the calls: at once where messages show it,
// else after the 100 ms for which a member has waited in vain, and where nobody
// waited at the next Barrier, Fence or Split at the latest. A dead rank is
// [runtime.ErrRankDead] to all; a call that was cancelled at one member is
// [runtime.ErrTeamBroken] to the others. After these the team is of no more use.
package collectives
