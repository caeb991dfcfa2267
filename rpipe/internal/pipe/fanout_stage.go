package pipe

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
)

// A FanStage is the memory in which the program fills the blocks of a fan-out. From there they
// leave to readers that are not mapped. The ends to these readers share it.
type FanStage struct {
	Stage
	users atomic.Int32 // ends of which it is the stage, and the fan-out itself
}

// NewFanStage makes a stage of o.Heap bytes.
func NewFanStage(ctx context.Context, t *team.Team, o *Options) (*FanStage, error) {
	r, err := RegistryOf(t)
	if err != nil {
		return nil, err
	}
	s := &FanStage{}
	s.users.Store(1)
	s.Stage, err = o.layer(t).Stage(ctx, fmt.Sprintf("rpipe/%s/fan#%d/%s", t.Name, r.number(), o.Name), o.Heap)
	return s, err
}

// Share makes it the stage of an end.
func (s *FanStage) Share(p *End) {
	s.users.Add(1)
	p.stage = Stage{Mem: s.Mem, Region: s.Region, Release: func(bool) error { s.Drop(); return nil }}
}

// Drop ends the use by an end or by the fan-out. The last Drop frees the memory.
func (s *FanStage) Drop() {
	if s.users.Add(-1) == 0 {
		_ = s.Release(false) // no caller is left to take its error
	}
}
