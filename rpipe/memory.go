package rpipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
)

// A memory is a piece of the heap that other ranks reach: a block of its own, or a
// piece of a slab.
type memory struct {
	block  arena.Block
	whole  *fabric.Region // a block of its own as it is registered
	slab   *slab
	addr   rmalloc.Addr   // in the slab
	region *fabric.Region // by which others find it, once it has appeared
}

// newMemory makes n bytes known under a name. prepare fills them before others can
// see them.
func newMemory(ctx context.Context, t *team.Team, name string, n int, prepare func(mem []byte)) (memory, error) {
	m, err := reserve(ctx, t, name, n)
	if err != nil {
		return m, err
	}
	prepare(m.block.Bytes)
	if err := m.appear(name); err != nil {
		return memory{}, errors.Join(err, m.release(t, false))
	}
	return m, nil
}

// reserve returns n bytes for a name under which no rank finds them yet.
func reserve(ctx context.Context, t *team.Team, name string, n int) (memory, error) {
	if n > slabPiece {
		return register(ctx, t, name+"/memory", n)
	}
	r, err := registryOf(t)
	if err != nil {
		return memory{}, err
	}
	return r.slabs.take(ctx, t, n)
}

// register allocates and registers a block of its own. No rank looks it up by this name.
func register(ctx context.Context, t *team.Team, name string, n int) (m memory, err error) {
	if m.block, err = t.Arena().Alloc(n); err != nil {
		return memory{}, err
	}
	if m.whole, err = t.Register(ctx, name, m.block.Memory); err != nil {
		return memory{}, errors.Join(err, t.Arena().Free(m.block))
	}
	return m, nil
}

// appear lets others find the memory by its name.
func (m *memory) appear(name string) (err error) {
	whole, at := m.whole, 0
	if m.slab != nil {
		whole, at = m.slab.whole, m.addr.Offset()
	}
	m.region, err = whole.Part(name, at, len(m.block.Bytes))
	return err
}

// unprepared leaves memory as it is.
func unprepared([]byte) {}

// release gives the memory back, if there is any. orphaned: the rank that put to
// it is dead.
func (m *memory) release(t *team.Team, orphaned bool) error {
	old := *m
	*m = memory{}
	var err error
	if old.region != nil {
		err = old.region.Close()
	}
	switch {
	case old.whole != nil:
		return errors.Join(err, old.whole.Close(), t.Arena().Free(old.block))
	case old.slab == nil:
		return err
	}
	r, gone := registryOf(t)
	if gone != nil {
		return err // the job ends and takes everything back
	}
	return errors.Join(err, r.slabs.give(t, &old, orphaned))
}
