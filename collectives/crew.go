package collectives

import (
	"fmt"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
)

// A crew is what choices depend on of those who make a call together. It is the same
// at all of them.
type crew struct {
	n       int
	hosts   int  // that they are on
	shared  bool // some are on one host
	runs    bool // those of each host follow one another
	crowded bool // some host has more of them than cores
	uneven  bool // they speak for hosts of unlike numbers of members
}

// together are n members on one host.
func together(n int) crew { return crew{n: n, hosts: 1, shared: n > 1, runs: true} }

// crewOf returns a team's.
func crewOf(t *team.Team) crew {
	n := len(t.Members)
	if t.Hosts == nil {
		return together(n)
	}
	h := message.NewHosts(t.Hosts)
	return crew{n: n, hosts: h.Count(), shared: h.Count() < n, runs: h.Runs(), crowded: t.Crowded}
}

// are reports whether a crew is where a rule wants it.
func (w crew) are(at where) bool {
	switch at {
	case severalHosts:
		return w.hosts > 1
	case sharedCores:
		return w.crowded
	case sharedByTwos:
		return w.crowded && w.n&(w.n-1) == 0
	}
	return true
}

// levels reports whether a crew can do something else within hosts than among them.
func (w crew) levels() bool { return w.hosts > 1 && w.shared }

func (w crew) String() string {
	about := fmt.Sprintf("%d ranks", w.n)
	if w.hosts > 1 {
		about += fmt.Sprintf(" on %d hosts", w.hosts)
	}
	if w.crowded {
		about += " that share cores"
	}
	return about
}
