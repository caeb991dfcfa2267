// Package collectives holds the calls that all ranks of a team make together to move and
// combine data. MPI calls them collective operations. Here they are typed, with any element
// type of fixed size.
//
//	err := collectives.AllReduce(ctx, world, collectives.Sum[float64](), in, out)
//
//	          Broadcast     Reduce      AllReduce     Gather      AllGather    Scatter     ReduceScatter  AllToAll
//	rank 0    a -> a        a -> a+b+c  a -> a+b+c    a -> a b c  a -> a b c   abc -> a    a b c -> a+..  abc -> adg
//	rank 1      -> a        b           b -> a+b+c    b           b -> a b c       -> b    d e f -> b+..  def -> beh
//	rank 2      -> a        c           c -> a+b+c    c           c -> a b c       -> c    g h i -> c+..  ghi -> cfi
//
// Those that combine take an [Op]: [Sum], [Prod], [Min], [Max], [And], [Or],
// [Xor], [MinLoc], [MaxLoc], or one by [NewOp]. Scan and ExScan combine the inputs of
// the ranks up to this one. The forms with a V have blocks of different lengths
// ([Blocks]). NeighborAllGather and NeighborAllToAll exchange blocks along the
// edges of a [Cart] or [Graph].
//
// # Three ways to make a call
//
//	AllReduce(ctx, t, op, in, out)                   blocking
//	Start(ctx, t, AllReduceCall(op, in, out))        goes on while the program computes; see [Request]
//	Plan(ctx, t, AllReduceCall(op, in, out))         checked once, made often; see [Planned]
//
// All members make the calls of a team in the same order. The calls run one after the
// other: a call waits for all calls before it, started ones too. A blocking call
// allocates nothing if the team has made a call of its kind before.
//
// # How data moves
//
//	collectives            checks arguments, chooses a way, keeps the order
//	   |            \
//	mapped memory    messages, in order, to each member
//
// Where all members of a team map each other's memory, they use boards, pieces of
// memory that one member writes and all read. Along the edges of a graph they use
// queues, one each way between two neighbors. A call reads and writes long data in
// the heap ([Alloc]) in place, and copies other data once.
//
// Elsewhere a call chooses an algorithm of messages. The choice depends on the length of the data,
// the members, their hosts and the operator. Among members on several hosts, those of each host
// still use a board of their own where the algorithm has a part for them. GRUN_EXPLAIN=collectives
// makes rank 0 print the algorithm and the reason, once for each shape of a call. [WithAlgorithm]
// chooses another algorithm, and GRUN_COLLECTIVES=messages excludes boards. The table of grun tune
// takes precedence over the built-in rules: GRUN_TUNED names its file, or is off. A file that a job
// cannot use causes a warning.
//
// # Order of combination
//
// The result is a0∘a1∘...∘a(n-1) in the order of ranks. A call may apply an operator
// that commutes in any order, which changes the rounding; with [Deterministic] it
// combines as ((a0∘a1)∘a2)∘... in every case.
//
// # Ownership of slices
//
// A call reads its input and never writes it. It writes its output, which may hold
// anything after an error. The call owns both until it returns, or until its request
// has ended. A return says that this member's part is done, not that other members
// have returned.
//
// # Errors
//
// A call checks its arguments before another member learns of it: [ErrLength], [ErrOverlap],
// [ErrOp], [ErrType], [ErrRange], [ErrAlgorithm] leave the team as it was. Calls must not differ in
// the collective, the root, the length, the type, the operator or an option. Members whose calls
// differ get [runtime.ErrMismatch], and a [runtime.MismatchError] names two of the calls. They get
// it at once where messages show the difference, else after a member has waited for 100 ms. The
// next Barrier, Fence or Split shows it at the latest. When a rank dies, all members get
// [runtime.ErrRankDead]. When a call is canceled at one member, the others get
// [runtime.ErrTeamBroken]. After these errors the team is of no more use.
package collectives
