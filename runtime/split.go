package runtime

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

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
	err := t.collective(ctx, team.Split, func(ctx context.Context, key team.Key) error {
		all, err := t.exchange(ctx, key, mine)
		if err != nil || color < 0 {
			return err
		}
		members, err := t.group(all, color)
		if err != nil {
			return err
		}
		// The call's number makes the name unique; it is the same at all members.
		made, err = t.job.newTeam(ctx, t, fmt.Sprintf("%s.%d.%d", t.name, key.Seq, color), members)
		return err
	})
	return made, err
}

// group returns the world ranks of the members that gave color.
func (t *Team) group(all [][]byte, color int) ([]int, error) {
	type member struct{ key, rank int }
	var chosen []member
	for r, b := range all {
		if len(b) != 16 {
			return nil, fmt.Errorf("team %s: %w: rank %d split with %d bytes", t.name, ErrMismatch, t.members[r], len(b))
		}
		if int(binary.LittleEndian.Uint64(b)) == color {
			chosen = append(chosen, member{int(binary.LittleEndian.Uint64(b[8:])), r})
		}
	}
	slices.SortStableFunc(chosen, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	members := make([]int, len(chosen))
	for i, m := range chosen {
		members[i] = t.members[m.rank]
	}
	return members, nil
}
