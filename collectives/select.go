package collectives

import (
	"fmt"
	"strings"
	"sync"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
)

// The names of the ways in mapped memory: in place, where the slices lie in the heap, and
// by copies in any case.
const (
	onBoard       = "board"
	stagedOnBoard = "board-staged"
)

// A way says how members make a call.
type way struct {
	message.Algorithm
	board  bool
	staged bool // on a board, by copies
}

// A ranked way belongs to a rule.
type ranked struct {
	rule
	from int // bytes of the longest buffer of the call
	way  *way
}

// ways holds the ways of each collective, in the order of the rules.
type ways struct {
	board  way
	tuned  map[message.Collective][]ranked        // by the table of measurements, nil without one
	ranked func() map[message.Collective][]ranked // by the rules
}

func newWays() ways {
	return ways{board: way{Algorithm: message.Algorithm{Name: onBoard, Exact: true}, board: true}, ranked: sync.OnceValue(byRules)}
}

// byRules returns the ways of each collective in the order of its rules. Members that map each
// other's memory seldom need them.
func byRules() map[message.Collective][]ranked {
	all := map[message.Collective][]ranked{}
	for _, r := range rules {
		if al, ok := message.Find(r.collective, r.name); ok {
			all[r.collective] = append(all[r.collective], ranked{rule: r, way: &way{Algorithm: al}})
		}
	}
	return all
}

// measured returns the way that was measured to be best. It returns nil if the call was not
// measured, or if that way cannot do it. Blocks whose lengths not all members know were not
// measured: they may be of any size.
func (w *ways) measured(c *Call, of topology, board bool) *way {
	list := w.tuned[c.of.family]
	if len(list) == 0 || of.n == 1 || c.count == team.Varied {
		return nil
	}
	size := c.bytes(of.n)
	for i := range list {
		if r := &list[i]; r.from <= size && size <= r.upTo {
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
func (w *ways) best(c *Call, of topology, board bool) *way {
	if way := w.measured(c, of, board); way != nil {
		return way
	}
	if board {
		return &w.board
	}
	return w.byRule(c.of.family, c, c.bytes(of.n), of)
}

// byRule returns the first way by the rules for a collective that is the whole call or a
// part of it.
func (w *ways) byRule(what message.Collective, c *Call, size int, of topology) *way {
	list := w.ranked()[what]
	for i := range list {
		if r := &list[i]; size <= r.upTo && of.n <= r.members && of.matches(r.where) && c.fits(r.way, of) == "" {
			return r.way
		}
	}
	return list[len(list)-1].way
}

// named returns the way that a call names.
func (w *ways) named(c *Call, of topology, board bool) (*way, error) {
	named, ok := wayNamed(c.of.family, c.algorithm)
	why := "there is none of this name"
	if ok {
		why = c.cannot(named, of, board)
	}
	if why != "" {
		return nil, fmt.Errorf("%w: %s by %q: %s; choose one of %s, or leave the choice open", ErrAlgorithm, c.of.name, c.algorithm,
			why, strings.Join(c.usable(of, board), ", "))
	}
	return named, nil
}
