package collectives

import (
	"fmt"
	"io"
	"math/bits"
	"os"

	"github.com/gopgas/gopgas/internal/team"
)

// The environment of a job.
const (
	// envExplain is "collectives" for a job whose collectives say how they are done.
	envExplain = "GRUN_EXPLAIN"
	// envWays is "messages" for a job whose collectives do without mapped memory.
	envWays = "GRUN_COLLECTIVES"
)

// A guide chooses ways, and says which if it is asked to.
type guide struct {
	ways     ways
	topology topology
	boards   bool // they may be used
	out      io.Writer
	said     map[topic]bool
	file     string // of what was measured, "" without
}

// A topic is what is explained once.
type topic struct {
	name  string // of the collective
	size  int    // power of two
	shape string
}

func newGuide(t *team.Team, measured *tuning) guide {
	g := guide{ways: newWays(), topology: topologyOf(t), boards: os.Getenv(envWays) != "messages", file: measured.path}
	if g.boards || !t.Mapped { // messages in mapped memory are not what was measured
		g.ways.tuned = measured.rank(pathOf(t, g.topology), g.topology.n)
	}
	if os.Getenv(envExplain) == "collectives" {
		g.out, g.said = os.Stderr, map[topic]bool{}
	}
	return g
}

// hasBoard tells whether a team's members can use boards for a call.
func (g *guide) hasBoard(c *Call, t *team.Team) bool {
	return g.boards && t.Mapped && fitsBoard(c, g.topology.n)
}

// allows returns why a call cannot be done as it asks.
func (g *guide) allows(c *Call, t *team.Team) error {
	if c.algorithm == "" {
		return nil
	}
	_, err := g.ways.named(c, g.topology, g.hasBoard(c, t))
	return err
}

// choose returns how a call is done. All members choose the same.
func (g *guide) choose(c *Call, t *team.Team) *way {
	board := g.hasBoard(c, t)
	var w *way
	switch {
	case c.algorithm != "":
		w, _ = g.ways.named(c, g.topology, board) // admitted before
	case board && g.ways.tuned == nil:
		w = &g.ways.board // as best would find, for the shortest calls
	default:
		w = g.ways.best(c, g.topology, board)
	}
	if g.out != nil && t.Rank == 0 {
		g.explain(c, t, w, board)
	}
	return w
}

// explain says once for each shape of a call how it is done, and why.
func (g *guide) explain(c *Call, t *team.Team, w *way, board bool) {
	size, rule := c.bytes(g.topology.n), "the rule for its size and members"
	if g.topology.hosts > 1 || g.topology.crowded {
		rule = "the rule for its size, members and where they are"
	}
	about := topic{c.of.name, bits.Len(uint(size)), c.typ.String() + byOp(c) + c.algorithm}
	if g.said[about] {
		return
	}
	g.said[about] = true
	why := rule
	switch {
	case c.algorithm != "":
		why = "the call asks for it"
	case w == g.ways.measured(c, g.topology, board):
		why = "measured to be best here, in " + g.file
	case w.board:
		why = "all members map each other's memory"
	case t.Mapped && !g.boards:
		why = envWays + "=messages, and " + rule
	case t.Mapped && !board:
		why = noBoard(c, g.topology.n)
	}
	length := "blocks of any length"
	if c.count != team.Varied {
		length = fmt.Sprintf("%d bytes", size)
	}
	fmt.Fprintf(g.out, "gopgas: team %s: %s of %v%s, %v, %s: %s (%s)\n",
		t.Name, c.of.name, c.typ, byOp(c), g.topology, length, w.Name, why)
}

// noBoard says why members that map each other's memory have no board for a call.
func noBoard(c *Call, n int) string {
	if n > boardMembers {
		return fmt.Sprintf("a board is for %d members at most", boardMembers)
	}
	return "its elements are too large for a board"
}

// explainHost says how the members of a host do their part of two-level calls.
func (g *guide) explainHost(t *team.Team, n int, board bool) {
	if g.out == nil || t.Rank != 0 {
		return
	}
	how := "messages, since not all of them map the others' memory"
	if board {
		how = "a board"
	}
	fmt.Fprintf(g.out, "gopgas: team %s, %v: the %d on the host of rank 0 use %s\n", t.Name, g.topology, n, how)
}

func byOp(c *Call) string {
	how := ""
	switch {
	case c.graph != nil:
		how = " along " + c.op
	case c.op != "":
		how = " by " + c.op
	}
	if c.ordered {
		how += ", deterministic"
	}
	return how
}
