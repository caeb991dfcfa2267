package rpipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A memory is a piece of the heap that other ranks reach: a block of its own, or a
// piece of a slab.
type memory struct {
	block  arena.Block
	region *fabric.Region
	slab   *slab
	addr   rmalloc.Addr // in the slab
}

// newMemory makes n bytes known under a name. prepare fills them before others can
// see them.
func newMemory(ctx context.Context, t *fabric.Team, name string, n int, prepare func(mem []byte)) (memory, error) {
	if n > slabPiece {
		return register(ctx, t, name, n, prepare)
	}
	r, err := registryOf(t)
	if err != nil {
		return memory{}, err
	}
	return r.slabs.take(ctx, t, name, n, prepare)
}

func register(ctx context.Context, t *fabric.Team, name string, n int, prepare func(mem []byte)) (m memory, err error) {
	if m.block, err = t.Arena().Alloc(n); err != nil {
		return memory{}, err
	}
	prepare(m.block.Bytes)
	if m.region, err = t.Register(ctx, name, m.block.Memory); err != nil {
		return memory{}, errors.Join(err, t.Arena().Free(m.block))
	}
	return m, nil
}

// unprepared leaves memory as it is.
func unprepared([]byte) {}

// release gives the memory back, if there is any. orphaned: the rank that put to
// it is dead.
func (m *memory) release(t *fabric.Team, orphaned bool) error {
	old := *m
	*m = memory{}
	switch {
	case old.region == nil:
		return nil
	case old.slab == nil:
		return errors.Join(old.region.Close(), t.Arena().Free(old.block))
	}
	r, err := registryOf(t)
	if err != nil {
		return nil //nolint:nilerr // the job ends and takes everything back
	}
	return r.slabs.give(t, &old, orphaned)
}
