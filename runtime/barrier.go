package runtime

import (
	"context"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// A barrier holds the members of a team until all have arrived.
type barrier interface {
	// arrive returns when all members have arrived with the same key and the same
	// collective, or with a *MismatchError. It also finds earlier calls that differed
	// without a wait.
	arrive(ctx context.Context, key team.Key, c team.Collective) error
}

// A releasing barrier has members that set the flags of others behind a wait of their own.
type releasing interface {
	// release sets those flags without a wait. The caller knows that all members have arrived. In mapped memory
	// release cannot fail.
	release(ctx context.Context, key team.Key, c team.Collective) error
}

// A telling barrier sets flags at other members, and each of them waits for its flag before it leaves arrive. So
// writes to these members, ahead of arrive and on the same connection, are applied once they leave.
type telling interface {
	// told returns the ranks of these members. A flag of the last answered of them came back to this one behind its own.
	told() (ranks []int, answered int)
}

// A departing barrier has memory at one member that others read after that member has left
// arrive. In all others, a member waits for each flag that is set in its memory.
type departing interface {
	// depart returns when no other member uses this rank's memory, or when ctx or the team ends. It is the
	// barrier's last call.
	depart(ctx context.Context) error
}

// These constants lay out a team's barrier memory at each member, in bytes. Words that
// different ranks write lie in cache lines of their own.
const (
	lineSize = 64
	// arriveOffset and releaseOffset belong to the central barrier of the
	// team's first member.
	arriveOffset  = 0
	releaseOffset = lineSize
	departOffset  = 2 * lineSize
	// releaseOffset is also the word that the member above writes in the tree barrier.
	// belowOffset: one word for each member below in the tree barrier.
	belowOffset = 2 * lineSize
	// roundsOffset: one word for each round of the dissemination barrier, or of a pair. They suffice for a
	// million members.
	roundsOffset = belowOffset + treeArity*lineSize
	maxRounds    = 20
	barrierSize  = roundsOffset + maxRounds*lineSize
	// outcomeOffset and choicesOffset belong to the Splits of a team whose members map memory (split_mapped.go).
	outcomeOffset = barrierSize
	choicesOffset = outcomeOffset + lineSize
	// roomOffset begins the team's room for package collectives.
	roomOffset = arena.Page
)

// starMost is the largest number of members that share cores and all meet at the first one. A short AllReduce
// connects the same members. With more, the first one would connect to too many.
const starMost = 32

// newBarrier picks the algorithm. Two members that map each other's memory exchange
// flags. More share one counter, up to lastOpens members, or up to starMost that share
// cores. The member that opens rings all others, and so maps their memory; in a tree each
// member maps that of treeArity + 1 others at most. On several hosts, only leaders exchange
// messages between hosts; members that all map each other's memory exchange none. All other teams
// pass messages, and the fewest where ranks share cores.
func newBarrier(t *Team, block arena.Block) barrier {
	n, hosts := len(t.members), groupsOf(t.inner.Hosts)
	switch {
	case n == 1:
		return alone{}
	case t.inner.Mapped && n == 2:
		return newPair(t, block)
	case t.inner.Mapped && (n <= lastOpens || n <= starMost && t.inner.Crowded()):
		return &central{team: t}
	case len(hosts) > 1 && len(hosts) < n && !t.inner.Mapped:
		return newLed(t, block.Bytes, hosts)
	case t.inner.Mapped || t.inner.Crowded():
		return newTree(t, block.Bytes, line(t.rank, n))
	}
	return newDissemination(t, block.Bytes, line(t.rank, n))
}

// A circle lists the members of a barrier, by team rank, with this rank's index among
// them.
type circle struct {
	members []int
	me      int
}

// line returns the circle of all n members of a team.
func line(rank, n int) circle {
	c := circle{make([]int, n), rank}
	for i := range c.members {
		c.members[i] = i
	}
	return c
}

// resolve finds the barrier memory of a member of the circle.
func (c *circle) resolve(ctx context.Context, t *Team, i int) (*fabric.Remote, error) {
	m := c.members[i]
	return t.job.fabric.ResolveAt(ctx, t.members[m], t.region(), t.places[m])
}

// start begins to connect to members of the circle, all at once, which begin to connect to this one.
func (c *circle) start(t *Team, which []int) {
	t.job.fabric.StartPeers(c.ranks(t, which), t.region(), true)
}

// ranks returns the ranks of members of the circle.
func (c *circle) ranks(t *Team, which []int) []int {
	ranks := make([]int, len(which))
	for i, w := range which {
		ranks[i] = t.members[c.members[w]]
	}
	return ranks
}

// alone is the barrier of a team of one.
type alone struct{}

func (alone) arrive(context.Context, team.Key, team.Collective) error { return nil }
