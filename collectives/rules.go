package collectives

import (
	"math"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A rule names the best algorithm for a collective up to a size and a number of members,
// on a condition about their hosts. The selector takes the first rule that applies and
// whose algorithm can do the call.
type rule struct {
	collective message.Collective
	upTo       int // bytes of the longest buffer of the call
	members    int
	where      where
	name       string
}

// always is more than there are bytes or members.
const always = math.MaxInt

// where is the condition of a rule on the members' hosts.
type where uint8

const (
	anywhere     where = iota
	severalHosts       // the members are on two hosts or more
	fewHosts           // on two or three
	hostEach           // each member has a host to itself, as leaders have
	sharedCores        // a host has more members than cores
	sharedByTwos       // likewise, and the number of members is a power of two
)

// rules selects among the algorithms of messages. Boards come before them: where all
// members map each other's memory, almost nothing is quicker.
//
// On several hosts the two-level algorithms come first: only leaders send to other hosts,
// and each level follows the rules for one level. Two levels save bytes between hosts, at
// any size, where members combine or all get the same data. Where every block has its own
// destination, two levels save messages and cost copies, which pays for short blocks.
//
// Between hosts a message takes L, sending or receiving one takes o, and a byte G. L is several
// times o. So few members that have a host each prefer few rounds to few messages: k messages sent
// at once take L + k o. If each waits for the one before, k messages take k (L + 2 o). With more
// members, or long blocks, k o and k m G prevail again. (docs/collectives-results.md has L = 20 us
// and 1 ms.)
//
// Members that share cores do little at the same time: the number of messages counts, and
// the number of bytes that move in all. The last rule of a collective can do every call.
var rules = [...]rule{
	{message.Broadcast, always, always, severalHosts, "two-level"},
	{message.Broadcast, always, 2, hostEach, "binomial"},
	{message.Broadcast, 64 << 10, 3, hostEach, "binomial"},
	{message.Broadcast, 64 << 10, 8, hostEach, "linear"},
	{message.Broadcast, 1 << 20, 8, hostEach, "chain"},
	{message.Broadcast, always, 4, sharedCores, "linear"},
	{message.Broadcast, 1 << 10, always, sharedCores, "binomial"},
	{message.Broadcast, 32 << 10, 8, sharedCores, "linear"},
	{message.Broadcast, always, always, sharedCores, "binomial"},
	{message.Broadcast, 64 << 10, always, anywhere, "binomial"},
	{message.Broadcast, always, 2, anywhere, "binomial"},
	{message.Broadcast, always, 4, anywhere, "chain"}, // n-2 segments more than the data, in place of twice the data
	{message.Broadcast, 1 << 20, always, anywhere, "scatter-all-gather"},
	{message.Broadcast, always, 8, anywhere, "chain"},
	{message.Broadcast, always, always, anywhere, "scatter-all-gather"},

	{message.Reduce, always, always, severalHosts, "two-level"},
	{message.Reduce, 64 << 10, 3, hostEach, "binomial"},
	{message.Reduce, 64 << 10, 8, hostEach, "linear"},
	{message.Reduce, 512 << 10, 8, hostEach, "binomial"},
	{message.Reduce, 32 << 10, always, sharedCores, "linear"},
	{message.Reduce, always, 8, sharedCores, "chain"}, // a member that has passed a segment on makes way for the next
	{message.Reduce, always, always, sharedCores, "binomial"},
	{message.Reduce, 64 << 10, always, anywhere, "binomial"},
	{message.Reduce, always, 2, anywhere, "binomial"}, // sends each byte once, and the sender goes on
	{message.Reduce, always, always, anywhere, "rabenseifner"},
	{message.Reduce, 4 << 10, always, anywhere, "linear"},
	{message.Reduce, always, always, anywhere, "pairwise"},

	{message.AllReduce, always, always, severalHosts, "two-level"},
	{message.AllReduce, 512 << 10, 2, hostEach, "recursive-doubling"},
	{message.AllReduce, 512 << 10, 3, hostEach, "linear"}, // two rounds; the others have more, unless members are a power of two
	{message.AllReduce, 256 << 10, 4, hostEach, "recursive-doubling"},
	{message.AllReduce, 64 << 10, 7, hostEach, "linear"},
	{message.AllReduce, 32 << 10, 4, sharedCores, "linear"},
	{message.AllReduce, always, 4, sharedCores, "rabenseifner"},
	{message.AllReduce, 256 << 10, always, sharedCores, "linear"},
	{message.AllReduce, always, always, sharedCores, "rabenseifner"},
	{message.AllReduce, 16 << 10, always, anywhere, "recursive-doubling"},
	{message.AllReduce, 128 << 10, always, anywhere, "rabenseifner"},
	{message.AllReduce, 512 << 10, 2, anywhere, "recursive-doubling"}, // one exchange in place of two halves
	{message.AllReduce, 512 << 10, always, anywhere, "rabenseifner"},
	{message.AllReduce, always, always, anywhere, "ring"},
	{message.AllReduce, always, always, anywhere, "rabenseifner"},
	{message.AllReduce, 4 << 10, always, anywhere, "linear"},
	{message.AllReduce, always, always, anywhere, "pairwise"},

	{message.Gather, 8 << 10, 8, severalHosts, "two-level"},
	{message.Gather, always, 8, severalHosts, "linear"},            // no member waits for another one
	{message.Gather, 128 << 10, always, severalHosts, "two-level"}, // a message less for each block, and a copy more
	{message.Gather, always, always, sharedCores, "linear"},
	{message.Gather, 64 << 10, always, anywhere, "binomial"},
	{message.Gather, always, always, anywhere, "linear"},

	{message.Scatter, 128 << 10, always, severalHosts, "two-level"},
	{message.Scatter, always, 8, sharedCores, "linear"},
	{message.Scatter, 64 << 10, always, anywhere, "binomial"},
	{message.Scatter, always, always, anywhere, "linear"},

	{message.AllGather, always, always, severalHosts, "two-level"},
	{message.AllGather, 1 << 20, 8, hostEach, "direct"},
	{message.AllGather, 32 << 10, always, sharedCores, "gather-broadcast"},
	{message.AllGather, always, always, sharedByTwos, "recursive-doubling"},
	{message.AllGather, 512 << 10, always, sharedCores, "recursive-doubling"},
	{message.AllGather, 64 << 10, always, anywhere, "recursive-doubling"},
	{message.AllGather, 64 << 10, always, anywhere, "bruck"},
	{message.AllGather, always, always, anywhere, "ring"},

	{message.ReduceScatter, always, always, severalHosts, "two-level"},
	{message.ReduceScatter, 32 << 10, always, sharedCores, "reduce-scatter"},
	{message.ReduceScatter, 512 << 10, 4, sharedCores, "recursive-halving"},
	{message.ReduceScatter, 512 << 10, 4, sharedCores, "reduce-scatter"}, // for operators that do not commute
	{message.ReduceScatter, always, 4, sharedCores, "pairwise"},
	{message.ReduceScatter, always, always, sharedCores, "recursive-halving"},
	{message.ReduceScatter, 512 << 10, always, sharedCores, "reduce-scatter"},
	{message.ReduceScatter, 64 << 10, always, anywhere, "recursive-halving"},
	{message.ReduceScatter, always, always, anywhere, "pairwise"},

	{message.AllToAll, 32 << 10, always, severalHosts, "two-level"}, // a message for each two hosts; four copies, by leaders alone
	{message.AllToAll, 1 << 20, 8, hostEach, "direct"},
	{message.AllToAll, 32 << 10, always, sharedCores, "gather-scatter"},
	{message.AllToAll, 512 << 10, always, sharedCores, "direct"},
	{message.AllToAll, 8 << 10, always, anywhere, "bruck"},
	{message.AllToAll, always, always, anywhere, "pairwise"},

	{message.Scan, always, always, fewHosts, "linear"}, // goes from host to host once, too, and no member waits for a later one
	{message.Scan, 16 << 10, always, severalHosts, "two-level"},
	{message.Scan, always, always, sharedCores, "linear"},
	{message.Scan, 8 << 10, always, anywhere, "recursive-doubling"},
	{message.Scan, always, always, anywhere, "linear"},

	{message.ExScan, always, 2, anywhere, "recursive-doubling"}, // one message, in one piece
	{message.ExScan, always, always, fewHosts, "linear"},
	{message.ExScan, 16 << 10, always, severalHosts, "two-level"},
	{message.ExScan, always, always, sharedCores, "linear"},
	{message.ExScan, 8 << 10, always, anywhere, "recursive-doubling"},
	{message.ExScan, always, always, anywhere, "linear"},

	{message.NeighborAllGather, always, always, anywhere, "hops"},
	{message.NeighborAllToAll, always, always, anywhere, "hops"},
}
