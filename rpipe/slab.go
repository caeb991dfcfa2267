package rpipe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A slab is registered memory that ends of pipes share, if they need little: a page
// each would be too much for thousands of them, and so would a registration.
type slab struct {
	memory
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
	mu   sync.Mutex
	list []*slab
	made int
}

// take returns n bytes, which are zero.
func (s *slabs) take(ctx context.Context, t *fabric.Team, n int) (memory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.list) - 1; i >= 0; i-- {
		m, err := s.list[i].take(n)
		if !errors.Is(err, rmalloc.ErrFull) {
			return m, err
		}
	}
	b, err := s.grow(ctx, t)
	if err != nil {
		return memory{}, err
	}
	return b.take(n)
}

func (s *slabs) grow(ctx context.Context, t *fabric.Team) (*slab, error) {
	m, err := register(ctx, t, fmt.Sprintf("rpipe/slab#%d", s.made), slabSize)
	if err != nil {
		return nil, err
	}
	heap, err := rmalloc.New(rmalloc.Config{Size: slabSize, Blocks: slabSize / rmalloc.Granule})
	if err != nil {
		return nil, errors.Join(err, m.release(t, false))
	}
	b := &slab{memory: m, heap: heap}
	s.list, s.made = append(s.list, b), s.made+1
	return b, nil
}

func (b *slab) take(n int) (memory, error) {
	a, err := b.heap.Alloc(n)
	if err != nil {
		return memory{}, err
	}
	m := memory{slab: b, addr: a}
	m.block.Bytes = cut(b.block.Bytes, a.Offset(), n)
	clear(m.block.Bytes)
	return m, nil
}

// give takes a piece back, which nobody finds any more. It is not used again if the rank that puts to it is
// dead: something may be on its way still. A slab without pieces goes, unless it is
// the last.
func (s *slabs) give(t *fabric.Team, m *memory, orphaned bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := m.slab
	if orphaned {
		b.lost = true
		return nil
	}
	err := b.heap.Free(m.addr)
	if b.lost || b.heap.Live() > 0 || len(s.list) == 1 {
		return err
	}
	for i := range s.list {
		if s.list[i] == b {
			s.list = append(s.list[:i], s.list[i+1:]...)
			break
		}
	}
	return errors.Join(err, b.release(t, false))
}
