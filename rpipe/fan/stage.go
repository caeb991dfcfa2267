package fan

import (
	"context"
	"slices"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A stage is the memory in which the blocks of a fan-out are filled, with its books. Readers
// read blocks in the order of writing, so a block is free once each reader has read it and
// all earlier ones.
type stage struct {
	*pipe.FanStage
	heap   *rmalloc.Heap
	unread []rmalloc.Range // blocks that some reader may not have read, in the order of writing
	first  uint64          // number of the first; blocks that leave from the stage have numbers from 0
}

func newStage(ctx context.Context, t *team.Team, o *pipe.Options) (*stage, error) {
	heap, err := rmalloc.New(rmalloc.Config{Size: o.Heap, Blocks: o.Blocks})
	if err != nil {
		return nil, err
	}
	s := &stage{heap: heap}
	s.FanStage, err = pipe.NewFanStage(ctx, t, o)
	return s, err
}

// next returns the number of the block that leaves next.
func (s *stage) next() uint64 { return s.first + uint64(len(s.unread)) }

// release takes a block of n bytes from the caller. leaves: readers read it from the stage.
func (s *stage) release(a rmalloc.Addr, n int, leaves bool) error {
	if !leaves {
		return s.heap.Free(a)
	}
	s.unread = append(s.unread, rmalloc.Range{Offset: a.Offset() / rmalloc.Granule, Count: rmalloc.Granules(n)})
	return s.heap.Send(a)
}

// read frees the blocks below a number, which all readers have read.
func (s *stage) read(below uint64) error {
	n := int(below - s.first)
	for _, r := range s.unread[:n] {
		if err := s.heap.Release(r.Offset, r.Count); err != nil {
			return err
		}
	}
	s.first, s.unread = below, slices.Delete(s.unread, 0, n)
	return nil
}
