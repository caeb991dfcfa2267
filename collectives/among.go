package collectives

import (
	"fmt"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// Members describes the members of a team for [ChoiceAmong].
type Members struct {
	Ranks   int
	PerHost int  // ranks of each host but perhaps the last; consecutive
	Crowded bool // a host has more ranks than cores
}

// ChoiceAmong returns the algorithm by which the built-in rules make a call of members that
// exchange messages. The argument collective is a name such as "all-reduce", and bytes the length
// of the longest buffer. The operator, if there is one, commutes. Tables of measurements play no
// part. Kind: local.
func ChoiceAmong(m Members, collective string, bytes int) (string, error) {
	family, ok := message.Named(collective)
	row := rowOf(family)
	switch {
	case !ok || row == nil:
		return "", fmt.Errorf("collective %q: %w", collective, ErrAlgorithm)
	case m.Ranks < 1 || m.PerHost < 1:
		return "", fmt.Errorf("%d ranks, %d on each host: %w; want 1 or more", m.Ranks, m.PerHost, ErrAlgorithm)
	}
	hosts := (m.Ranks + m.PerHost - 1) / m.PerHost
	of := topology{n: m.Ranks, hosts: hosts, shared: hosts < m.Ranks, runs: true, crowded: m.Crowded}
	c := Call{of: row, commutes: true, combine: func(_, _, _ []byte) {}}
	w := newWays()
	return w.byRule(family, &c, bytes, of).Name, nil
}

// rowOf returns the row of a collective with blocks of one length.
func rowOf(family message.Collective) *collective {
	for _, row := range []*collective{broadcast, reduce, allReduce, gather, allGather, scatter, reduceScatter, allToAll, scan, exScan} {
		if row.family == family {
			return row
		}
	}
	return nil
}
