package rpipe

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A fanStage is the memory that the blocks of a fan-out are filled in, and that
// they leave from to readers which are not mapped.
type fanStage struct {
	memory
	team *fabric.Team
	heap *rmalloc.Heap
	away map[rmalloc.Addr]voyage
	ends atomic.Int32 // links that it may leave over, and the fan-out itself
}

// A voyage is a block that is on its way.
type voyage struct {
	readers  int // that do not have it yet
	granules int // 0: it is still its owner's
}

func newFanStage(ctx context.Context, t *fabric.Team, name string, size, blocks int) (*fanStage, error) {
	s := &fanStage{team: t, away: map[rmalloc.Addr]voyage{}}
	var err error
	if s.heap, err = rmalloc.New(rmalloc.Config{Size: size, Blocks: blocks}); err != nil {
		return nil, err
	}
	r, err := registryOf(t)
	if err != nil {
		return nil, err
	}
	s.ends.Store(1)
	s.memory, err = newMemory(ctx, t, fmt.Sprintf("rpipe/%s/fan#%d/%s", t.Name, r.number(), name), size, unprepared)
	return s, err
}

// share makes it the stage of a link.
func (s *fanStage) share(l *fabricLink) {
	s.ends.Add(1)
	l.shared, l.staged = s, s.memory
}

// drop gives the memory back behind the last one.
func (s *fanStage) drop() {
	if s.ends.Add(-1) == 0 {
		_ = s.release(s.team, false) // nobody is there to be told
	}
}

// leaves counts a reader that a block is on its way to.
func (s *fanStage) leaves(a rmalloc.Addr) {
	v := s.away[a]
	v.readers++
	s.away[a] = v
}

// settle takes a block of n bytes from its owner: its memory is free when the last
// reader has it.
func (s *fanStage) settle(a rmalloc.Addr, n int) error {
	v := s.away[a]
	if v.readers == 0 {
		delete(s.away, a)
		return s.heap.Free(a)
	}
	v.granules = max(1, (n+rmalloc.Granule-1)/rmalloc.Granule)
	s.away[a] = v
	return s.heap.Send(a)
}

// arrived tells that a reader has a block, or is gone.
func (s *fanStage) arrived(a rmalloc.Addr) error {
	v := s.away[a]
	v.readers--
	if v.readers > 0 || v.granules == 0 {
		s.away[a] = v
		return nil
	}
	delete(s.away, a)
	return s.heap.Release(a.Offset()/rmalloc.Granule, v.granules)
}
