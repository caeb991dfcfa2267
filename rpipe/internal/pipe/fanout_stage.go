package pipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
)

// A FanStage is the memory that the blocks of a fan-out are filled in, and that
// they leave from to readers which are not mapped.
type FanStage struct {
	site
	Heap *rmalloc.Heap
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
	Bytes() []byte
	// lend makes it the stage of a link.
	lend(s *FanStage, l Link)
	giveUp()
}

func NewFanStage(ctx context.Context, t *team.Team, o *Options) (*FanStage, error) {
	s := &FanStage{away: map[rmalloc.Addr]voyage{}}
	var err error
	if s.Heap, err = rmalloc.New(rmalloc.Config{Size: o.Heap, Blocks: o.Blocks}); err != nil {
		return nil, err
	}
	s.ends.Store(1)
	if o.Pool != nil {
		s.site, err = newPlaceSite(o.Pool, o.Heap)
	} else {
		s.site, err = newFabricSite(ctx, t, o)
	}
	return s, err
}

// Share makes it the stage of a link.
func (s *FanStage) Share(l Link) {
	s.ends.Add(1)
	s.lend(s, l)
}

// Drop gives the memory back behind the last one.
func (s *FanStage) Drop() {
	if s != nil && s.ends.Add(-1) == 0 {
		s.giveUp() // no caller is left to take its error
	}
}

// Leaves counts a reader that a block is on its way to.
func (s *FanStage) Leaves(a rmalloc.Addr) {
	v := s.away[a]
	v.readers++
	s.away[a] = v
}

// Settle takes a block of n bytes from its owner: its memory is free when the last
// reader has it.
func (s *FanStage) Settle(a rmalloc.Addr, n int) error {
	v := s.away[a]
	if v.readers == 0 {
		delete(s.away, a)
		return s.Heap.Free(a)
	}
	v.granules = rmalloc.Granules(n)
	s.away[a] = v
	return s.Heap.Send(a)
}

// Arrived notes that a reader has a block, or is gone. With the last reader the block is
// free.
func (s *FanStage) Arrived(a rmalloc.Addr) error {
	v := s.away[a]
	v.readers--
	if v.readers > 0 || v.granules == 0 {
		s.away[a] = v
		return nil
	}
	delete(s.away, a)
	return s.Heap.Release(a.Offset()/rmalloc.Granule, v.granules)
}
