package fan

import (
	"context"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A stage is the memory in which the blocks of a fan-out are filled, with its books.
type stage struct {
	*pipe.FanStage
	heap     *rmalloc.Heap
	inFlight map[rmalloc.Addr]flight
}

// A flight counts the readers to which a block was written and that have not read it.
type flight struct {
	readers  int
	granules int // 0: the caller still owns the block
}

func newStage(ctx context.Context, t *team.Team, o *pipe.Options) (*stage, error) {
	heap, err := rmalloc.New(rmalloc.Config{Size: o.Heap, Blocks: o.Blocks})
	if err != nil {
		return nil, err
	}
	s := &stage{heap: heap, inFlight: map[rmalloc.Addr]flight{}}
	s.FanStage, err = pipe.NewFanStage(ctx, t, o)
	return s, err
}

// sent counts a reader to which a block was written.
func (s *stage) sent(a rmalloc.Addr) {
	v := s.inFlight[a]
	v.readers++
	s.inFlight[a] = v
}

// release takes a block of n bytes from the caller. Its memory is free once all readers
// have read the block.
func (s *stage) release(a rmalloc.Addr, n int) error {
	v := s.inFlight[a]
	if v.readers == 0 {
		delete(s.inFlight, a)
		return s.heap.Free(a)
	}
	v.granules = rmalloc.Granules(n)
	s.inFlight[a] = v
	return s.heap.Send(a)
}

// delivered counts a reader that has read a block, or that is gone.
func (s *stage) delivered(a rmalloc.Addr) error {
	v := s.inFlight[a]
	v.readers--
	if v.readers > 0 || v.granules == 0 {
		s.inFlight[a] = v
		return nil
	}
	delete(s.inFlight, a)
	return s.heap.Release(a.Offset()/rmalloc.Granule, v.granules)
}
