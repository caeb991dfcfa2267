package runtime

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
)

// Split makes one new team of all members that give the same color. It orders them by
// key, and members with the same key by rank in this team. A member with a negative
// color gets no team: nil and no error, and [ErrTeam] from that team's calls. Members
// may return at different times: if one is lost after it returned, the call can still
// fail at other members. Kind: collective.
func (t *Team) Split(ctx context.Context, color, key int) (*Team, error) {
	if t == nil {
		return nil, noTeam(team.Split)
	}
	call := &t.stream.own[team.Split]
	at, err := t.stream.Begin(ctx, call)
	if err != nil {
		return nil, err
	}
	s := &split{parent: t, at: at, mine: choice{color: max(color, noColor), key: key}}
	made, err := s.run(ctx)
	return made, t.stream.End(at, call, err)
}

// splitName returns the name of a team that Split makes in its call of number seq.
func splitName(parent string, seq uint64, color int) string {
	return fmt.Sprintf("%s.%d.%d", parent, seq, color)
}

// splitOf returns the name of the team whose Split makes a team, and the number of that call. It returns
// false for the world.
func splitOf(name string) (parent string, seq uint64, ok bool) {
	parts := strings.Split(name, ".")
	last := len(parts) - 2
	if last < 1 {
		return "", 0, false
	}
	seq, err := strconv.ParseUint(parts[last], 10, 64)
	return strings.Join(parts[:last], "."), seq, err == nil
}

// SplitHost makes one new team of the members on each host, in the order of this team: they map
// each other's memory where the provider can. It is Split with the host as color. A container
// that hides its processes is a host of its own. Kind: collective.
func (t *Team) SplitHost(ctx context.Context) (*Team, error) {
	host := 0
	if t != nil {
		host = t.inner.Hosts[t.rank]
	}
	return t.Split(ctx, host, 0)
}

// A split is a call of Split at one member of parent:
//
//	prepare      this rank's memory of the new team
//	gather       the choices of all members: by mapped memory, or through the launcher
//	complete     the team of those with this member's color
type split struct {
	parent *Team
	at     team.Key
	mine   choice
	draft  *Team // nil: this member gets no team
	bad    error // why this rank could not prepare
}

// A choice holds the arguments of a member, and what the others need of it.
type choice struct {
	color, key int
	place      *fabric.Place // of its memory of the new team, if members that map none need it
	bad        string        // why it could not prepare
}

// noColor is the color of a member that gets no team.
const noColor = -1

// run makes the team, or returns nil without an error.
func (s *split) run(ctx context.Context) (*Team, error) {
	t := s.parent
	if s.mine.color != noColor {
		// The call's number makes the name unique; it is the same at all members.
		s.draft = t.job.draft(splitName(t.name, s.at.Seq, s.mine.color), t.members)
		if s.bad = s.draft.prepare(ctx); s.bad != nil {
			s.mine.bad = s.bad.Error()
		}
		s.mine.place = s.draft.known.Place()
	}
	mutant.Hesitate(mutant.Call)
	all, err := s.gather(ctx)
	mutant.Hesitate(mutant.Call)
	if s.draft == nil {
		return nil, err
	}
	if err == nil { // a member that fails here or in gather breaks the parent, which ends the waits of the others
		err = t.within(ctx, func(ctx context.Context) error { return s.complete(ctx, all) })
	} else if !team.OutcomeUnknown(err) { // then no member makes the team
		s.draft.setMembers([]int{t.members[t.rank]})
	}
	if err != nil {
		return nil, errors.Join(s.draft.failed(team.Split.String(), err), s.draft.giveUp(t, err))
	}
	return s.draft, nil
}

// gather returns the choices of all members.
func (s *split) gather(ctx context.Context) (all []choice, err error) {
	if s.parent.gathersInMemory() {
		if all, err = s.gatherMapped(ctx); all != nil || err != nil {
			return all, err
		}
	} else if err = s.parent.barrier.arrive(ctx, s.at, team.Split); err != nil {
		return nil, err
	}
	err = s.parent.within(ctx, func(ctx context.Context) error {
		all, err = s.gatherFar(ctx)
		return err
	})
	return all, err
}

// gatherFar gathers the choices through the launcher.
func (s *split) gatherFar(ctx context.Context) ([]choice, error) {
	t := s.parent
	texts, err := t.exchange(ctx, s.at, s.mine.append(nil))
	if err != nil {
		return nil, err
	}
	all := make([]choice, len(texts))
	for r, text := range texts {
		var ok bool
		if all[r], ok = cutChoice(text); !ok {
			return nil, fmt.Errorf("team %s: %w: rank %d split with %d bytes", t.name, ErrMismatch, t.members[r], len(text))
		}
	}
	return all, nil
}

// complete makes the draft a team of all members with its color.
func (s *split) complete(ctx context.Context, all []choice) error {
	type member struct{ key, rank int }
	t, draft := s.parent, s.draft
	var chosen []member
	for r, c := range all {
		if c.color == s.mine.color {
			chosen = append(chosen, member{c.key, r})
		}
	}
	slices.SortStableFunc(chosen, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	members := make([]int, len(chosen))
	for i, m := range chosen {
		members[i] = t.members[m.rank]
	}
	draft.setMembers(members)
	err := s.bad
	for i, m := range chosen {
		draft.places[i] = all[m.rank].place
		if bad := all[m.rank].bad; bad != "" && err == nil {
			err = fmt.Errorf("team %s: rank %d: %s", draft.name, members[i], bad)
		}
	}
	if err == nil {
		err = draft.settle(ctx, t.inner.Mapped)
	}
	if err != nil {
		return err
	}
	draft.open()
	if b, ok := draft.barrier.(*central); ok {
		b.prepare()
	}
	return nil
}

// append appends the wire form of a choice: color and key, of 8 bytes each, the place, and the rest why the
// member could not prepare.
func (c *choice) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(c.color))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.key))
	return append(c.place.Append(b), c.bad...)
}

// cutChoice decodes a choice.
func cutChoice(b []byte) (c choice, ok bool) {
	const head = 16
	if len(b) < head {
		return choice{}, false
	}
	c.color, c.key = int(binary.LittleEndian.Uint64(b)), int(binary.LittleEndian.Uint64(b[8:]))
	place, bad, ok := fabric.CutPlace(b[head:])
	c.place, c.bad = place, string(bad)
	return c, ok
}
