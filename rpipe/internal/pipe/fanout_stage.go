package pipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
)

// A FanStage is the memory in which the blocks of a fan-out are filled, and from which
// they leave to readers that are not mapped. The links to these readers share it.
type FanStage struct {
	site
	users atomic.Int32 // links of which it is the stage, and the fan-out itself
}

// site is where a stage lies.
type site interface {
	Bytes() []byte
	// lend makes it the stage of a link.
	lend(s *FanStage, l Link)
	giveUp()
}

// NewFanStage makes a stage of o.Heap bytes, in a pipe window if there is one.
func NewFanStage(ctx context.Context, t *team.Team, o *Options) (s *FanStage, err error) {
	s = &FanStage{}
	s.users.Store(1)
	if o.Pool != nil {
		s.site, err = newPlaceSite(o.Pool, o.Heap)
	} else {
		s.site, err = newFabricSite(ctx, t, o)
	}
	return s, err
}

// Share makes it the stage of a link.
func (s *FanStage) Share(l Link) {
	s.users.Add(1)
	s.lend(s, l)
}

// Drop ends the use by a link or by the fan-out. The last Drop frees the memory.
func (s *FanStage) Drop() {
	if s != nil && s.users.Add(-1) == 0 {
		s.giveUp() // no caller is left to take its error
	}
}
