package fan

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A stage is the memory in which the blocks of a fan-out are filled, with its books. They leave
// from there to readers that are not mapped. Readers
// read blocks in the order of writing, so a block is free once each reader has read it and
// all earlier ones.
type stage struct {
	pipe.Stage
	users  atomic.Int32 // ends of which it is the stage, and the fan-out itself
	heap   *rmalloc.Heap
	unread []rmalloc.Range // blocks that some reader may not have read, in the order of writing
	first  uint64          // number of the first; blocks that leave from the stage have numbers from 0
}

// newStage makes registered memory of this rank in which blocks are filled, with its books. The fan-out
// is its first user.
func newStage(ctx context.Context, t *team.Team, o *pipe.Options) (*stage, error) {
	heap, err := rmalloc.New(rmalloc.Config{Size: o.Heap, Blocks: o.Blocks})
	if err != nil {
		return nil, err
	}
	s := &stage{heap: heap}
	s.users.Store(1)
	s.Stage, err = pipe.NewStage(ctx, t, o)
	return s, err
}

// share makes it the stage of an end.
func (s *stage) share(p *pipe.End) {
	s.users.Add(1)
	p.UseStage(pipe.Stage{Mem: s.Mem, Region: s.Region, Release: func(bool) error { s.drop(); return nil }})
}

// drop ends the use by an end or by the fan-out. The last drop frees the memory.
func (s *stage) drop() {
	if s.users.Add(-1) == 0 {
		_ = s.Release(false) // no caller is left to take its error
	}
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
