package rpipe

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/overwindow"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// An Option adjusts a pipe as it is opened. Both ends give the same options, except
// those that belong to one end alone.
type Option = pipe.Option

// Without options a pipe has these.
const (
	DefaultWidth  = pipe.DefaultWidth
	DefaultHeap   = pipe.DefaultHeap
	DefaultBlocks = pipe.DefaultBlocks
)

// A Policy chooses where in the heap the next block goes.
type Policy = rmalloc.Policy

// The policies of the paper.
type (
	// NextFit takes the first hole that is large enough from where the last
	// block went. It is the default, and the fastest.
	NextFit = rmalloc.NextFit
	// FirstFit takes the lowest hole that is large enough.
	FirstFit = rmalloc.FirstFit
	// BestFit takes the smallest hole that is large enough.
	BestFit = rmalloc.BestFit
	// WorstFit takes the largest hole.
	WorstFit = rmalloc.WorstFit
)

// Sync says when the writer learns of freed memory.
type Sync = pipe.Sync

const (
	// Deferred: the reader gathers freed ranges and announces them in one write.
	// Alloc posts nothing; it may not know the latest.
	Deferred = pipe.Deferred
	// Immediate: each Alloc asks for what was freed, in one read; Free posts
	// nothing.
	Immediate = pipe.Immediate
)

// WithName names the pipe. Two ends find each other by team, ranks and name: the
// writer's k-th opening of a name meets the reader's k-th.
func WithName(name string) pipe.Option {
	return func(o *pipe.Options) error { o.Name = name; return nil }
}

// WithWidth sets how many blocks may be written and not yet read. For each of them the
// reader of a push pipe has a cache line, over a window a slot.
func WithWidth(n int) pipe.Option {
	return func(o *pipe.Options) error {
		o.Width = n
		return pipe.Within("width of %d blocks", n, 1, pipe.MaxWidth)
	}
}

// WithHeap sets the size of the pipe's heap in bytes, a multiple of 64. Blocks that are
// allocated and not yet freed share it.
func WithHeap(bytes int) pipe.Option {
	return func(o *pipe.Options) error {
		o.Heap = bytes
		if bytes%rmalloc.Granule != 0 {
			return fmt.Errorf("heap of %d bytes: %w: give a multiple of %d", bytes, runtime.ErrRange, rmalloc.Granule)
		}
		return pipe.Within("heap of %d bytes", bytes, rmalloc.Granule, rmalloc.MaxHeap)
	}
}

// WithBlocks sets how many blocks may be allocated and not yet freed.
func WithBlocks(n int) pipe.Option {
	return func(o *pipe.Options) error { o.Blocks = n; return pipe.Within("%d blocks", n, 1, pipe.MaxBlocks) }
}

// WithPolicy sets where blocks go. BestFit and WorstFit synchronize immediately
// unless WithSync says otherwise.
func WithPolicy(p Policy) pipe.Option {
	return func(o *pipe.Options) error { o.Policy = p; return nil }
}

// WithSync sets when the writer learns of freed memory.
func WithSync(s pipe.Sync) pipe.Option {
	return func(o *pipe.Options) error {
		o.Sync = s
		return pipe.Within("synchronization %d", int(s), int(pipe.Deferred), int(pipe.Immediate))
	}
}

// WithPull leaves blocks at the writer until the reader fetches them. A reader to which the writer
// is not mapped fetches blocks into a heap of its own. A call that reads starts to fetch all
// announced blocks, up to the width and as far as the heap has room. When blocks that were read and
// not freed fill that heap, Read waits for a Free.
func WithPull() pipe.Option {
	return func(o *pipe.Options) error { o.Pull = true; return nil }
}

// WithTwoPuts has a queued Write post data and flag one after the other instead of
// together. It serves comparisons. It is the writer's alone.
func WithTwoPuts() pipe.Option {
	return func(o *pipe.Options) error { o.Twice = true; return nil }
}

// WithFMA sets the switch point of queued writes in bytes. The device copies blocks up to
// it as they are posted. Larger ones leave from the block's memory. Without it the job's switch point holds. It is the writer's alone.
func WithFMA(bytes int) pipe.Option {
	return func(o *pipe.Options) error {
		o.Fma = bytes
		return pipe.Within("switch point of %d bytes", bytes, 0, rmalloc.MaxHeap)
	}
}

// WithAtomicReads has a pull pipe's queued Read fetch small blocks by an atomic instead of a READ.
// The limit is a number of bytes, 8 at most. Without it Read uses the atomic on RDMA devices, where
// it was measured to be quicker. On tcp, where both cost the same, Read uses a READ. It is the
// reader's alone.
func WithAtomicReads(bytes int) pipe.Option {
	return func(o *pipe.Options) error {
		o.Atomic = bytes
		return pipe.Within("atomic reads of %d bytes", bytes, 0, pipe.WordSize)
	}
}

// WithWindow has the pipe run over a window, whose places have room for it; both
// ends give it. With nil it is as without.
func WithWindow(c *WindowPool) pipe.Option {
	return func(o *pipe.Options) error { o.Layer = overwindow.Layer(c); return nil }
}
