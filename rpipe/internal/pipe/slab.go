package pipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
)

// A slab is registered memory that ends of pipes share, if they need little: a page
// each would be too much for thousands of them, and so would a registration.
type slab struct {
	Memory
	heap *rmalloc.Heap
	lost bool // a piece of it stays taken
}

const (
	slabSize = 256 << 10
	// slabPiece is the most that comes from a slab.
	slabPiece = slabSize / 8
)

// slabs are a rank's.
type slabs struct {
	growing turn.Turn // the call that registers another slab holds it
	made    int       // guarded by growing
	mu      sync.Mutex
	list    []*slab
}

// Take returns n bytes, which are zero.
func (s *slabs) Take(ctx context.Context, t *team.Team, n int) (Memory, error) {
	m, err := s.find(n)
	if !errors.Is(err, rmalloc.ErrFull) {
		return m, err
	}
	if err := s.growing.Take(ctx); err != nil {
		return Memory{}, err
	}
	defer s.growing.Give()
	if m, err := s.find(n); !errors.Is(err, rmalloc.ErrFull) { // another call has grown them
		return m, err
	}
	b, err := s.grow(ctx, t)
	if err != nil {
		return Memory{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, b)
	return b.Take(n)
}

// find takes n bytes from the slabs that there are.
func (s *slabs) find(n int) (Memory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.list) - 1; i >= 0; i-- {
		m, err := s.list[i].Take(n)
		if !errors.Is(err, rmalloc.ErrFull) {
			return m, err
		}
	}
	return Memory{}, rmalloc.ErrFull
}

// grow registers one slab more, which peers find by its name. Precondition: this call has the turn of
// growing.
func (s *slabs) grow(ctx context.Context, t *team.Team) (*slab, error) {
	m, err := register(ctx, t, fmt.Sprintf("rpipe/slab#%d", s.made), slabSize)
	if err != nil {
		return nil, err
	}
	heap, err := rmalloc.New(rmalloc.Config{Size: slabSize, Blocks: slabSize / rmalloc.Granule})
	if err != nil {
		return nil, errors.Join(err, m.Release(t, false))
	}
	s.made++
	return &slab{Memory: m, heap: heap}, nil
}

// Take returns n zeroed bytes of the slab. Precondition: the mutex of slabs is held.
func (b *slab) Take(n int) (Memory, error) {
	a, err := b.heap.Alloc(n)
	if err != nil {
		return Memory{}, err
	}
	m := Memory{Slab: b, addr: a}
	m.Block.Bytes = cut(b.Block.Bytes, a.Offset(), n)
	clear(m.Block.Bytes)
	return m, nil
}

// give takes back a piece that no rank can find any more. It never reuses the piece of
// a dead writer, whose puts may still be under way. It releases a slab without pieces,
// unless it is the last.
func (s *slabs) give(t *team.Team, m *Memory, orphaned bool) error {
	empty, err := s.Put(m, orphaned)
	if empty {
		err = errors.Join(err, m.Slab.Release(t, false))
	}
	return err
}

// Put gives memory back to its slab, and reports whether give must give the slab back.
func (s *slabs) Put(m *Memory, orphaned bool) (empty bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := m.Slab
	if orphaned {
		b.lost = true
		return false, nil
	}
	err = b.heap.Free(m.addr)
	if b.lost || b.heap.Live() > 0 || len(s.list) == 1 {
		return false, err
	}
	s.list = slices.DeleteFunc(s.list, func(o *slab) bool { return o == b })
	return true, err
}
