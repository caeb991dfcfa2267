package collectives

import (
	"fmt"
	"math"
	"strings"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/runtime"
)

// A rule says which algorithm is best for a collective up to a size and a number
// of members, and where they are. The first rule that applies, and whose algorithm
// can do the call, counts.
type rule struct {
	collective message.Collective
	upTo       int // bytes of the longest buffer of the call
	members    int
	where      where
	name       string
}

// always is more than there are bytes or members.
const always = math.MaxInt

// where is what rules ask of the members' places.
type where uint8

const (
	anywhere     where = iota
	severalHosts       // they are on two hosts or more
	sharedCores        // some host has more of them than cores
)

// rules are the selection among algorithms of messages. Boards come before them:
// where all members map each other's memory nothing is quicker. On several hosts
// those of two levels come first, whatever the size: only what leaders have travels
// between hosts, and each level is done by the rules for one. Members that share
// cores do little at the same time: what counts is how many messages there are, and
// how many bytes move in all. The last rule of a collective can do every call.
var rules = [...]rule{
	{message.Broadcast, always, always, severalHosts, "two-level"},
	{message.Broadcast, always, always, sharedCores, "binomial"},
	{message.Broadcast, 64 << 10, always, anywhere, "binomial"},
	{message.Broadcast, always, 2, anywhere, "binomial"},
	{message.Broadcast, always, 4, anywhere, "chain"}, // n-2 segments more than the data, in place of twice the data
	{message.Broadcast, 1 << 20, always, anywhere, "scatter-all-gather"},
	{message.Broadcast, always, 8, anywhere, "chain"},
	{message.Broadcast, always, always, anywhere, "scatter-all-gather"},

	{message.Reduce, always, always, severalHosts, "two-level"},
	{message.Reduce, 32 << 10, always, sharedCores, "linear"},
	{message.Reduce, always, always, sharedCores, "binomial"},
	{message.Reduce, 64 << 10, always, anywhere, "binomial"},
	{message.Reduce, always, 2, anywhere, "binomial"}, // the bytes that there are, and the other goes on
	{message.Reduce, always, always, anywhere, "rabenseifner"},
	{message.Reduce, 4 << 10, always, anywhere, "linear"},
	{message.Reduce, always, always, anywhere, "pairwise"},

	{message.AllReduce, always, always, severalHosts, "two-level"},
	{message.AllReduce, 256 << 10, always, sharedCores, "linear"},
	{message.AllReduce, 2 << 20, always, sharedCores, "rabenseifner"},
	{message.AllReduce, 16 << 10, always, anywhere, "recursive-doubling"},
	{message.AllReduce, 128 << 10, always, anywhere, "rabenseifner"},
	{message.AllReduce, 512 << 10, 2, anywhere, "recursive-doubling"}, // one exchange in place of two halves
	{message.AllReduce, 512 << 10, always, anywhere, "rabenseifner"},
	{message.AllReduce, always, always, anywhere, "ring"},
	{message.AllReduce, always, always, anywhere, "rabenseifner"},
	{message.AllReduce, 4 << 10, always, anywhere, "linear"},
	{message.AllReduce, always, always, anywhere, "pairwise"},

	{message.Gather, always, always, sharedCores, "linear"},
	{message.Gather, 64 << 10, always, anywhere, "binomial"},
	{message.Gather, always, always, anywhere, "linear"},

	{message.Scatter, 64 << 10, always, anywhere, "binomial"},
	{message.Scatter, always, always, anywhere, "linear"},

	{message.AllGather, always, always, severalHosts, "two-level"},
	{message.AllGather, 8 << 10, always, sharedCores, "gather-broadcast"},
	{message.AllGather, 64 << 10, always, anywhere, "recursive-doubling"},
	{message.AllGather, 64 << 10, always, anywhere, "bruck"},
	{message.AllGather, always, always, anywhere, "ring"},

	{message.ReduceScatter, 8 << 10, 4, sharedCores, "ring"},
	{message.ReduceScatter, 512 << 10, 4, sharedCores, "recursive-halving"},
	{message.ReduceScatter, 512 << 10, always, sharedCores, "reduce-scatter"},
	{message.ReduceScatter, 64 << 10, always, anywhere, "recursive-halving"},
	{message.ReduceScatter, always, always, anywhere, "pairwise"},

	{message.AllToAll, 32 << 10, always, sharedCores, "gather-scatter"},
	{message.AllToAll, 128 << 10, always, sharedCores, "bruck"},
	{message.AllToAll, 8 << 10, always, anywhere, "bruck"},
	{message.AllToAll, always, always, anywhere, "pairwise"},

	{message.Scan, always, always, sharedCores, "linear"},
	{message.Scan, 8 << 10, always, anywhere, "recursive-doubling"},
	{message.Scan, always, always, anywhere, "linear"},

	{message.ExScan, always, always, sharedCores, "linear"},
	{message.ExScan, 8 << 10, always, anywhere, "recursive-doubling"},
	{message.ExScan, always, always, anywhere, "linear"},

	{message.NeighbourAllGather, always, always, anywhere, "hops"},
	{message.NeighbourAllToAll, always, always, anywhere, "hops"},
}

// The names of what is done in mapped memory: in place, where the slices lie in the
// heap, and by copies in any case.
const (
	onBoard       = "board"
	stagedOnBoard = "board-staged"
)

// A way is how a call is done.
type way struct {
	message.Algorithm
	board  bool
	staged bool // on a board, by copies
}

// A ranked way is a rule's.
type ranked struct {
	rule
	way *way
}

// ways are all ways, by collective: those that rules prefer, and all others.
type ways struct {
	board  way
	tuned  map[message.Collective][]ranked // by what was measured here
	ranked map[message.Collective][]ranked
}

func newWays() ways {
	w := ways{board: way{Algorithm: message.Algorithm{Name: onBoard, Exact: true}, board: true}, ranked: map[message.Collective][]ranked{}}
	for _, r := range rules {
		if al, ok := message.Find(r.collective, r.name); ok {
			w.ranked[r.collective] = append(w.ranked[r.collective], ranked{r, &way{Algorithm: al}})
		}
	}
	return w
}

// measured returns the way that was measured to be best, nil if that was not, or
// cannot do the call. Blocks whose lengths not all members know were not measured:
// they may be of any size.
func (w *ways) measured(c *Call, of crew, board bool) *way {
	if w.tuned == nil || of.n == 1 || c.count == fabric.Varied {
		return nil
	}
	size, list := c.bytes(of.n), w.tuned[c.family()]
	for i := range list {
		if r := &list[i]; size <= r.upTo {
			if r.way.board && !board || !r.way.board && c.fits(r.way, of) != "" {
				return nil
			}
			return r.way
		}
	}
	return nil
}

// best returns the way that was measured to be best, or else the first by the
// rules that can do a call.
func (w *ways) best(c *Call, of crew, board bool) *way {
	if way := w.measured(c, of, board); way != nil {
		return way
	}
	if board {
		return &w.board
	}
	return w.byRule(c.family(), c, c.bytes(of.n), of)
}

// byRule returns the first way by the rules to do a collective that is all of a call,
// or a part of it.
func (w *ways) byRule(what message.Collective, c *Call, size int, of crew) *way {
	list := w.ranked[what]
	for i := range list {
		if r := &list[i]; size <= r.upTo && of.n <= r.members && of.are(r.where) && c.fits(r.way, of) == "" {
			return r.way
		}
	}
	return list[len(list)-1].way
}

// named returns the way that a call asks for.
func (w *ways) named(c *Call, of crew, board bool) (*way, error) {
	named, ok := wayNamed(c.family(), c.algorithm)
	why := "there is none of this name"
	if ok {
		why = c.cannot(named, of, board)
	}
	if why != "" {
		return nil, fmt.Errorf("%w: %s by %q: %s; choose one of %s, or leave the choice open", ErrAlgorithm, c.kind, c.algorithm,
			why, strings.Join(c.usable(of, board), ", "))
	}
	return named, nil
}

// cannot returns why a way cannot do a call of members that have boards or none, ""
// if it can.
func (c *Call) cannot(w *way, of crew, board bool) string {
	switch {
	case !w.board:
		return c.fits(w, of)
	case !board:
		return "the members do not use each other's memory for it"
	}
	return ""
}

// usable returns the names of the ways that can do a call.
func (c *Call) usable(of crew, board bool) (names []string) {
	for _, name := range namesOf(c.family()) {
		if w, ok := wayNamed(c.family(), name); ok && c.cannot(w, of, board) == "" {
			names = append(names, name)
		}
	}
	return names
}

// fits returns why a way cannot do a call, "" if it can. All members find the
// same.
func (c *Call) fits(w *way, of crew) string {
	n := of.n
	reduces := c.combine != nil && n > 1
	switch needs := w.Needs; {
	case reduces && c.ordered && !w.Exact:
		return "it does not combine from left to right"
	case reduces && !c.commutes && needs&message.Commuting != 0:
		return "its operator must commute"
	case needs&message.EvenSize != 0 && n%2 != 0 && n > 1:
		return "it needs an even number of members"
	case needs&message.EqualBlocks != 0 && c.vary:
		return "it needs blocks of one length"
	case needs&message.EveryCount != 0 && c.count == fabric.Varied:
		return "all members must know all counts"
	case needs&message.PackedBlocks != 0 && (c.sendBlocks.Offsets != nil || c.recvBlocks.Offsets != nil):
		return "it needs blocks that follow one another"
	case needs&message.HostMap != 0 && of.hosts < 2:
		return "it is for members on several hosts"
	case needs&message.HostMap != 0 && !of.shared:
		return "no two members share a host"
	case needs&message.HostRuns != 0 && !of.runs:
		return "it needs hosts whose members follow one another"
	case needs&message.OrderedHosts != 0 && reduces && !c.commutes && !of.runs:
		return "its operator must commute, or the members of each host follow one another"
	}
	return ""
}

// family returns the collective whose algorithms do a call.
func (c *Call) family() message.Collective {
	switch c.kind {
	case fabric.Broadcast:
		return message.Broadcast
	case fabric.Reduce:
		return message.Reduce
	case fabric.AllReduce:
		return message.AllReduce
	case fabric.Gather, fabric.GatherV:
		return message.Gather
	case fabric.Scatter, fabric.ScatterV:
		return message.Scatter
	case fabric.AllGather, fabric.AllGatherV:
		return message.AllGather
	case fabric.ReduceScatter, fabric.ReduceScatterV:
		return message.ReduceScatter
	case fabric.AllToAll, fabric.AllToAllV:
		return message.AllToAll
	case fabric.Scan:
		return message.Scan
	case fabric.ExScan:
		return message.ExScan
	case fabric.NeighborAllGather, fabric.NeighborAllGatherV:
		return message.NeighbourAllGather
	}
	return message.NeighbourAllToAll
}

// bytes returns the length of a call's longest buffer as all members know it, 0
// where they do not.
func (c *Call) bytes(n int) int {
	switch {
	case c.count == fabric.Varied:
		return 0
	case c.vary:
		return c.count * c.size
	}
	switch c.kind {
	case fabric.Gather, fabric.AllGather, fabric.Scatter, fabric.ReduceScatter:
		return n * c.count * c.size
	}
	return c.count * c.size
}

func namesOf(c message.Collective) []string {
	names := []string{onBoard, stagedOnBoard}
	for _, al := range message.Algorithms(c) {
		names = append(names, al.Name)
	}
	return names
}

// Algorithms returns the names of the algorithms by which a team can do a call, which
// [WithAlgorithm] takes: none if it cannot be done at all. For a nil team it returns
// the names of all that there are for the collective. Kind: local.
func (c Call) Algorithms(t *runtime.Team) []string {
	if t == nil && c.typ != nil {
		return namesOf(c.family())
	}
	c.algorithm = ""
	g, _, err := admit(t, &c)
	if err != nil {
		return nil
	}
	return c.usable(g.guide.crew, g.guide.hasBoard(&c, g.team))
}

// Choice returns the name of the algorithm by which a team does a call. Kind: local.
func (c Call) Choice(t *runtime.Team) (string, error) {
	g, _, err := admit(t, &c)
	if err != nil {
		return "", err
	}
	board := g.guide.hasBoard(&c, g.team)
	if c.algorithm != "" {
		w, err := g.guide.ways.named(&c, g.guide.crew, board)
		if err != nil {
			return "", err
		}
		return w.Name, nil
	}
	return g.guide.ways.best(&c, g.guide.crew, board).Name, nil
}
