package pipe

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/team"
)

// fabricSite is registered memory.
type fabricSite struct {
	Memory
	team *team.Team
}

func newFabricSite(ctx context.Context, t *team.Team, o *Options) (*fabricSite, error) {
	r, err := registryOf(t)
	if err != nil {
		return nil, err
	}
	m, err := newMemory(ctx, t, fmt.Sprintf("rpipe/%s/fan#%d/%s", t.Name, r.number(), o.Name), o.Heap, unprepared)
	return &fabricSite{m, t}, err
}

func (m *fabricSite) Bytes() []byte { return m.Block.Bytes }

func (m *fabricSite) lend(s *FanStage, l Link) {
	to := l.(*FabricLink)
	to.shared, to.staged = s, m.Memory
}

func (m *fabricSite) giveUp() { _ = m.Release(m.team, false) }

// berthSite is a carrier's berth where no end lies.
type berthSite struct {
	c     *Carrier
	berth int
	mem   []byte
}

func newBerthSite(c *Carrier, size int) (*berthSite, error) {
	if size > c.room() {
		return nil, fmt.Errorf("%w: %d bytes, where a berth of the carrier has %d; give OverWindow the pipes' options", ErrTooLarge, size, c.room())
	}
	berth, err := c.Take()
	if err != nil {
		return nil, err
	}
	return &berthSite{c, berth, c.w.Local()[c.dataOf(berth):][:size]}, nil
}

func (b *berthSite) Bytes() []byte { return b.mem }

func (b *berthSite) lend(s *FanStage, l Link) {
	to := l.(*WindowLink)
	to.shared, to.staged = s, b.mem
}

func (b *berthSite) giveUp() { _ = b.c.give(b.berth) }
