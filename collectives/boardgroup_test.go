package collectives

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/board"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// TestBoardVerdictNamesMembersByTeamRank uses a board of some members of a team. Each has
// another number there than in the team.
func TestBoardVerdictNamesMembersByTeamRank(t *testing.T) {
	differ := errors.New("they differ")
	var seq uint64
	var member int
	g := &group{team: &team.Team{Members: []int{6, 7, 8, 9, 5}, Differs: func(_ context.Context, s uint64, m int) error {
		seq, member = s, m
		return differ
	}}}
	g.key, g.name = team.Key{Seq: 7}, allToAllV.name
	at := &boardGroup{members: []int{1, 2, 4}}
	require.ErrorIs(t, g.boardVerdict(t.Context(), at, fmt.Errorf("turn: %w", &board.Differs{Member: 2, Seq: 5})), differ)
	require.Equal(t, 4, member)
	require.EqualValues(t, 5, seq)
	require.Equal(t, &runtime.MismatchError{Rank: 6, Other: 7, Call: "AllToAllV with a block of 8 bytes between the two", OtherDid: "AllToAllV with one of 0"},
		g.boardVerdict(t.Context(), at, &board.LengthError{Member: 0, Theirs: 0, Mine: 8}))
}
