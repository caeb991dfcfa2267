package runtime

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// Split makes one new team of all members that give the same color. It orders them by
// key, and members with the same key by rank in this team. A member with a negative
// color gets no team: nil and no error, and [ErrTeam] from that team's calls. Members
// may return at different times: if one is lost after it returned, the call can still
// fail at other members. Kind: collective.
func (t *Team) Split(ctx context.Context, color, key int) (*Team, error) {
	mine := binary.LittleEndian.AppendUint64(nil, uint64(color))
	mine = binary.LittleEndian.AppendUint64(mine, uint64(key))
	var made *Team
	err := t.collective(ctx, team.Split, func(ctx context.Context, key team.Key) (err error) {
		if color < 0 {
			_, err = t.exchange(ctx, key, mine)
			return err
		}
		// The call's number makes the name unique; it is the same at all members.
		draft := t.job.draft(splitName(t.name, key.Seq, color), t.members)
		made, err = draft.make(ctx, t, func(card []byte) ([][]byte, error) {
			all, err := t.exchange(ctx, key, append(draft.known.Place().Append(mine), card...))
			if err != nil {
				if !team.OutcomeUnknown(err) { // then no member makes the team
					draft.setMembers([]int{t.members[t.rank]})
				}
				return nil, err
			}
			members, places, cards, err := t.group(all, color)
			if err == nil {
				draft.setMembers(members)
				draft.places = places
			}
			return cards, err
		})
		return err
	})
	return made, err
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

// Each member brings to the exchange of Split its color and key, of 8 bytes each. Members that make a team
// bring also the place of their memory and their card. Most cards are alike, and no places are.
const splitSize = 16

// group returns the world ranks of the members that gave color, their places and their cards.
func (t *Team) group(all [][]byte, color int) (members []int, places []*fabric.Place, cards [][]byte, err error) {
	type member struct{ key, rank int }
	var chosen []member
	for r, b := range all {
		if len(b) < splitSize {
			return nil, nil, nil, fmt.Errorf("team %s: %w: rank %d split with %d bytes", t.name, ErrMismatch, t.members[r], len(b))
		}
		if int(binary.LittleEndian.Uint64(b)) == color {
			chosen = append(chosen, member{int(binary.LittleEndian.Uint64(b[8:])), r})
		}
	}
	slices.SortStableFunc(chosen, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	for _, m := range chosen {
		at, card, ok := fabric.CutPlace(all[m.rank][splitSize:])
		if !ok {
			return nil, nil, nil, fmt.Errorf("team %s: %w: rank %d split with a place that is cut off", t.name, ErrMismatch, t.members[m.rank])
		}
		members, places, cards = append(members, t.members[m.rank]), append(places, at), append(cards, card)
	}
	return members, places, cards, nil
}
