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

// placeSite is a pool's place where no end lies.
type placeSite struct {
	c     *Pool
	place int
	mem   []byte
}

func newPlaceSite(c *Pool, size int) (*placeSite, error) {
	if size > c.room() {
		return nil, fmt.Errorf("%w: %d bytes, where a place of the pool has %d; give OverWindow the pipes' options", ErrTooLarge, size, c.room())
	}
	place, err := c.Take()
	if err != nil {
		return nil, err
	}
	return &placeSite{c, place, c.w.Local()[c.dataOf(place):][:size]}, nil
}

func (b *placeSite) Bytes() []byte { return b.mem }

func (b *placeSite) lend(s *FanStage, l Link) {
	to := l.(*WindowLink)
	to.shared, to.staged = s, b.mem
}

func (b *placeSite) giveUp() { _ = b.c.give(b.place) }
