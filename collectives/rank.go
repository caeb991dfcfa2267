package collectives

import (
	"os"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/tuned"
)

// A rankState serves all teams of a rank that choose by the same table of measurements. So a new team finds the
// descriptions of calls that earlier teams made.
type rankState struct {
	boards   bool // calls may use mapped memory
	explains bool // rank 0 of each team explains its choices
	ways     ways
	shapes   shapes
}

// rankStateOf returns the state of this rank's teams that choose by the table of a mark.
func rankStateOf(f *fabric.Fabric, mark string) (*rankState, error) {
	s, err := f.Attach("collectives"+mark, func() fabric.Attachment { return newRankState(mark) })
	if err != nil {
		return nil, err
	}
	return s.(*rankState), nil //nolint:forcetypeassert // no other name begins so
}

// newRankState reads the environment.
func newRankState(mark string) *rankState {
	s := &rankState{boards: os.Getenv(tuned.EnvWays) != "messages", explains: os.Getenv(tuned.EnvExplain) == "collectives", ways: newWays()}
	s.shapes.tuned, s.shapes.boards = mark, s.boards
	return s
}

// Close has nothing to end.
func (*rankState) Close() {}
