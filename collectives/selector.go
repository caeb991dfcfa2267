package collectives

import (
	"fmt"
	"io"
	"math/bits"
	"os"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/tuned"
)

// A selector chooses the way of each call, and explains the choice where the job asks for it.
type selector struct {
	ways     ways
	topology topology
	boards   bool // calls may use mapped memory
	out      io.Writer
	said     map[topic]bool
	file     string // of the table of measurements, "" without one
}

// A topic identifies the calls that share one explanation.
type topic struct {
	name  string // of the collective
	size  int    // power of two
	shape string
}

// newSelector reads the table of grun tune, once for each team.
func newSelector(t *team.Team, measured *tuning, shared *rankState) selector {
	s := selector{ways: shared.ways, topology: topologyOf(t), boards: shared.boards, file: measured.path}
	list, found := measured.rank(t)
	used := s.boards || !t.Mapped && s.topology.hosts == 1 // the table measures no messages in mapped memory
	if used {
		s.ways.tuned = list
	}
	if t.Rank == 0 && s.topology.n > 1 && measured.table != nil && t.Verbose {
		measured.report(os.Stderr, t, found, used)
	}
	if shared.explains {
		s.out, s.said = os.Stderr, map[topic]bool{}
	}
	return s
}

// hasBoard reports whether a team's members can use boards for a call.
func (s *selector) hasBoard(c *Call, t *team.Team) bool {
	return s.boards && t.Mapped && fitsBoard(c, s.topology.n)
}

// allows returns an error if the team cannot do a call by the algorithm that the call names.
func (s *selector) allows(c *Call, t *team.Team) error {
	if c.algorithm == "" {
		return nil
	}
	_, err := s.ways.named(c, s.topology, s.hasBoard(c, t))
	return err
}

// choose returns the way of a call. All members choose the same.
func (s *selector) choose(c *Call, t *team.Team) *way {
	board := s.hasBoard(c, t)
	var w *way
	switch {
	case c.algorithm != "":
		w, _ = s.ways.named(c, s.topology, board) // admitted before
	case board && (s.ways.tuned == nil || len(s.ways.tuned[c.of.family]) == 0):
		w = &s.ways.board // as best would find, for the shortest calls
	default:
		w = s.ways.best(c, s.topology, board)
	}
	if s.out != nil && t.Rank == 0 {
		s.explain(c, t, w, board)
	}
	return w
}

// explain writes the way of a call and the reason, once for each topic.
func (s *selector) explain(c *Call, t *team.Team, w *way, board bool) {
	size, rule := c.bytes(s.topology.n), "the rule for its size and members"
	if s.topology.hosts > 1 || s.topology.crowded {
		rule = "the rule for its size, members and where they are"
	}
	about := topic{c.of.name, bits.Len(uint(size)), c.typ.String() + byOp(c) + c.algorithm}
	if s.said[about] {
		return
	}
	s.said[about] = true
	why := rule
	switch {
	case c.algorithm != "":
		why = "the call asks for it"
	case w == s.ways.measured(c, s.topology, board):
		why = "measured to be faster here, in " + s.file
	case w.board:
		why = "all members map each other's memory"
	case t.Mapped && !s.boards:
		why = tuned.EnvWays + "=messages, and " + rule
	case t.Mapped && !board:
		why = noBoard(c, s.topology.n)
	}
	length := "blocks of any length"
	if c.count != team.Varied {
		length = fmt.Sprintf("%d bytes", size)
	}
	fmt.Fprintf(s.out, "gopgas: team %s: %s of %v%s, %v, %s: %s (%s)\n",
		t.Name, c.of.name, c.typ, byOp(c), s.topology, length, w.Name, why)
}

// noBoard returns why members that map each other's memory have no board for a call.
func noBoard(c *Call, n int) string {
	if n > boardMembers {
		return fmt.Sprintf("a board is for %d members at most", boardMembers)
	}
	return "its elements are too large for a board"
}

// explainHost writes how the members of a host do their part of two-level calls.
func (s *selector) explainHost(t *team.Team, n int, board bool) {
	if s.out == nil || t.Rank != 0 {
		return
	}
	how := "messages, since not all of them map the others' memory"
	switch {
	case board:
		how = "a board"
	case t.Mapped:
		how = "messages, since the memory of the team holds the board of all members"
	}
	fmt.Fprintf(s.out, "gopgas: team %s, %v: the %d on the host of rank 0 use %s\n", t.Name, s.topology, n, how)
}

// byOp says in the explanation of a choice which operator the call has.
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
