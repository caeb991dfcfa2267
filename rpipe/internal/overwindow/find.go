package overwindow

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// Appear implements pipe.Directory. An end whose peer is dead by then is as good as before.
func (m *memory) Appear(ctx context.Context) error {
	err := m.verdict(m.c.publish(ctx, m.place, m.ends.Peer, m.hashes[0]))
	if errors.Is(m.fate(), runtime.ErrRankDead) {
		return nil
	}
	return err
}

// Find implements pipe.Directory.
func (m *memory) Find(ctx context.Context, wait bool, check func(card []byte) error) (*pipe.Far, error) {
	c, peer, find := m.c, m.ends.Peer, m.c.find
	if wait {
		find = c.await
	}
	place, err := find(ctx, peer, m.hashes[1])
	if place < 0 || err != nil {
		return nil, m.verdict(err)
	}
	r, far := &farPlace{data: c.dataOf(place), slot: c.slotsOf(place)}, &pipe.Far{}
	if r.mem, err = c.shared(ctx, peer); err != nil {
		return nil, m.verdict(err)
	}
	if far.Queue, err = c.team.Peer(ctx, c.team.Members[peer]); err != nil {
		return nil, m.verdict(err)
	}
	card := make([]byte, pipe.CardSize)
	if err := c.fetch(ctx, peer, r.mem, r.data, card); err != nil {
		return nil, m.verdict(err)
	}
	if err := check(card); err != nil {
		m.misfit = r
		return nil, err
	}
	m.theirs.Store(r)
	if r.mem != nil {
		far.Data = r.mem[r.data:][:m.ends.Theirs.Data]
	}
	return far, nil
}

// FindCount implements pipe.Directory.
func (m *memory) FindCount(ctx context.Context, n pipe.Counter) (*fabric.Peer, func(context.Context, uint64) error, error) {
	c, peer := m.c, m.ends.Peer
	if !c.isCount(n.Group) {
		return nil, nil, pipe.ErrNoSummary
	}
	to, err := c.team.Peer(ctx, c.team.Members[peer])
	if err != nil {
		return nil, nil, m.verdict(err)
	}
	return to, func(ctx context.Context, add uint64) error {
		return m.verdict(c.w.PutNotify(ctx, peer, 0, nil, window.Signal{Slot: n.Group, Add: true, Value: add}))
	}, nil
}

// Disown implements pipe.Directory.
func (m *memory) Disown(ctx context.Context) bool {
	word := window.Signal{Slot: m.misfit.slot + m.c.flags, Value: 1}
	return m.c.w.PutNotify(ctx, m.ends.Peer, 0, nil, word) == nil
}
