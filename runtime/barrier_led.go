package runtime

import (
	"context"
	"slices"

	"github.com/gopgas/gopgas/internal/team"
)

// led is for members on several hosts, some of which hold more than one. Flags pass up
// a tree within each host to its first member, the leader. The leaders pass the barrier
// by dissemination, and flags pass down the trees again.
//
//	host a: 0 1 2    1 2 --> 0         0 --> 1 2
//	host b: 3 4        4 --> 3  0<->3  3 --> 4
//
// So only leaders send to other hosts, in ceil(log2 H) rounds for H hosts. Within a
// host, flags are stores where the members map each other's memory. Members that share
// a counter must agree on that; here they need not. (Two levels: Karonis, de Supinski,
// Foster, Gropp, Lusk and Bresnahan, "Exploiting Hierarchy in Parallel Computer
// Networks to Optimize Collective Operation Performance", 2000.)
type led struct {
	within *tree
	among  *dissemination // nil but at leaders
}

// newLed returns the barrier of groups of members; each group shares a host.
func newLed(t *Team, mem []byte, groups [][]int) *led {
	mine := slices.IndexFunc(groups, func(group []int) bool { return slices.Contains(group, t.rank) })
	here := circle{groups[mine], slices.Index(groups[mine], t.rank)}
	b := &led{within: newTree(t, mem, here)}
	if here.me == 0 {
		leaders := circle{make([]int, len(groups)), mine}
		for i, group := range groups {
			leaders.members[i] = group[0]
		}
		b.among = newDissemination(t, mem, leaders)
	}
	return b
}

// arrive goes up the tree of this host, lets leaders meet, and goes down again.
func (b *led) arrive(ctx context.Context, key team.Key, c team.Collective) error {
	if err := b.within.up(ctx, key, c); err != nil {
		return err
	}
	if b.among != nil {
		if err := b.among.arrive(ctx, key, c); err != nil {
			return err
		}
	}
	return b.within.down(ctx, key, c)
}

// told returns the members around in the tree, and the other leaders of the rounds.
func (b *led) told() (ranks []int, answered int) {
	ranks, answered = b.within.told()
	if b.among != nil { // a leader has no member above
		others, _ := b.among.told()
		ranks = append(ranks, others...)
	}
	return ranks, answered
}

// groupsOf returns the members of each host, in the order of the hosts' first members.
func groupsOf(hosts []int) (groups [][]int) {
	at := make(map[int]int)
	for member, host := range hosts {
		i, seen := at[host]
		if !seen {
			i = len(groups)
			at[host], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], member)
	}
	return groups
}
