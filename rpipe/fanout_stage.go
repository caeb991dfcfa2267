package rpipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
)

// A fanStage is the memory that the blocks of a fan-out are filled in, and that
// they leave from to readers which are not mapped.
type fanStage struct {
	site
	heap *rmalloc.Heap
	away map[rmalloc.Addr]voyage
	ends atomic.Int32 // links that it may leave over, and the fan-out itself
}

// A voyage is a block that is on its way.
type voyage struct {
	readers  int // that do not have it yet
	granules int // 0: it is still its owner's
}

// site is where a stage lies.
type site interface {
	bytes() []byte
	// lend makes it the stage of a link.
	lend(s *fanStage, l link)
	giveUp()
}

func newFanStage(ctx context.Context, t *team.Team, o *options) (*fanStage, error) {
	s := &fanStage{away: map[rmalloc.Addr]voyage{}}
	var err error
	if s.heap, err = rmalloc.New(rmalloc.Config{Size: o.heap, Blocks: o.blocks}); err != nil {
		return nil, err
	}
	s.ends.Store(1)
	if o.carrier != nil {
		s.site, err = newBerthSite(o.carrier, o.heap)
	} else {
		s.site, err = newFabricSite(ctx, t, o)
	}
	return s, err
}

// share makes it the stage of a link.
func (s *fanStage) share(l link) {
	s.ends.Add(1)
	s.lend(s, l)
}

// drop gives the memory back behind the last one.
func (s *fanStage) drop() {
	if s != nil && s.ends.Add(-1) == 0 {
		s.giveUp() // no caller is left to take its error
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
	v.granules = rmalloc.Granules(n)
	s.away[a] = v
	return s.heap.Send(a)
}

// arrived notes that a reader has a block, or is gone. With the last reader the block is
// free.
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
