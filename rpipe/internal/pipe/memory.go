package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
)

// A Memory is a piece of the heap that other ranks reach: a block of its own, or a
// piece of a slab.
type Memory struct {
	Block  arena.Block
	Whole  *fabric.Region // a block of its own as it is registered
	Slab   *slab
	addr   rmalloc.Addr   // in the slab
	Region *fabric.Region // by which others find it, once it has appeared
}

// newMemory makes n bytes known under a name.
func newMemory(ctx context.Context, t *team.Team, name string, n int) (Memory, error) {
	m, err := reserve(ctx, t, name, n)
	if err != nil {
		return m, err
	}
	if err := m.Appear(name); err != nil {
		return Memory{}, errors.Join(err, m.Release(t, false))
	}
	return m, nil
}

// reserve returns n bytes for a name under which no rank finds them yet.
func reserve(ctx context.Context, t *team.Team, name string, n int) (Memory, error) {
	if n > slabPiece {
		return register(ctx, t, name+"/memory", n)
	}
	r, err := RegistryOf(t)
	if err != nil {
		return Memory{}, err
	}
	return r.slabs.Take(ctx, t, n)
}

// register allocates and registers a block of its own. No rank looks it up by this name.
func register(ctx context.Context, t *team.Team, name string, n int) (m Memory, err error) {
	if m.Block, err = t.Arena().Alloc(n); err != nil {
		return Memory{}, err
	}
	if m.Whole, err = t.Register(ctx, name, m.Block.Memory); err != nil {
		return Memory{}, errors.Join(err, t.Arena().Free(m.Block))
	}
	return m, nil
}

// Appear lets others find the memory by its name.
func (m *Memory) Appear(name string) (err error) {
	whole, at := m.Whole, 0
	if m.Slab != nil {
		whole, at = m.Slab.Whole, m.addr.Offset()
	}
	m.Region, err = whole.Part(name, at, len(m.Block.Bytes))
	return err
}

// Release gives the memory back, if there is any. orphaned: the rank that put to
// it is dead. A block of its own is quarantined instead if the device cannot say that no request
// of a peer reaches it any more: the process of a peer may be stopped within one.
func (m *Memory) Release(t *team.Team, orphaned bool) error {
	old := *m
	*m = Memory{}
	var err error
	if old.Region != nil {
		err = old.Region.Close()
	}
	switch {
	case old.Whole != nil:
		return errors.Join(err, t.GiveBack(old.Whole, old.Block))
	case old.Slab == nil:
		return err
	}
	r, gone := RegistryOf(t)
	if gone != nil {
		return err // the job ends and takes everything back
	}
	return errors.Join(err, r.slabs.give(t, &old, orphaned))
}
