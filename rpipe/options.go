package rpipe

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/overwindow"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// An Option adjusts a pipe as it is opened. Both ends give the same options, except
// those that belong to one end alone: else a call of either end returns [runtime.ErrMismatch]. A number
// out of an option's bounds is [runtime.ErrRange] when the end is opened.
type Option = pipe.Option

// Without options a pipe has these.
const (
	DefaultWidth  = pipe.DefaultWidth  // blocks, see WithWidth
	DefaultHeap   = pipe.DefaultHeap   // bytes, see WithHeap
	DefaultBlocks = pipe.DefaultBlocks // blocks, see WithBlocks
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
	// Immediate: each Alloc reads the freed ranges in one read. Free posts nothing.
	Immediate = pipe.Immediate
)

// WithName names the pipe; without it the name is "pipe". Two ends find each other by team, ranks and
// name: the writer's k-th opening of a name meets the reader's k-th.
func WithName(name string) Option {
	return func(o *pipe.Options) error { o.Name = name; return nil }
}

// WithWidth sets how many blocks may be written and not yet read, from 1 to 2^20. Without it that is
// DefaultWidth. For each of them the reader of a push pipe has a cache line, over a window a slot.
func WithWidth(n int) Option {
	return func(o *pipe.Options) error {
		o.Width = n
		return pipe.Within("width of %d blocks", n, 1, pipe.MaxWidth)
	}
}

// WithHeap sets the size of the pipe's heap in bytes, a multiple of 64 up to 1 GiB. Without it that is
// DefaultHeap. Blocks that are allocated and not yet freed share it.
func WithHeap(bytes int) Option {
	return func(o *pipe.Options) error {
		o.Heap = bytes
		if bytes%rmalloc.Granule != 0 {
			return fmt.Errorf("heap of %d bytes: %w: give a multiple of %d", bytes, runtime.ErrRange, rmalloc.Granule)
		}
		return pipe.Within("heap of %d bytes", bytes, rmalloc.Granule, rmalloc.MaxHeap)
	}
}

// WithBlocks sets how many blocks may be allocated and not yet freed, from 1 to 2^24. Without it that
// is DefaultBlocks. A block takes 64 bytes of the heap at least, which bounds the number, too.
func WithBlocks(n int) Option {
	return func(o *pipe.Options) error { o.Blocks = n; return pipe.Within("%d blocks", n, 1, pipe.MaxBlocks) }
}

// WithPolicy sets where blocks go. Without it that is [NextFit]. BestFit and WorstFit synchronize
// immediately unless WithSync says otherwise.
func WithPolicy(p Policy) Option {
	return func(o *pipe.Options) error { o.Policy = p; return nil }
}

// WithSync sets when the writer learns of freed memory: [Deferred], or [Immediate]. Without it the
// policy decides: see WithPolicy.
func WithSync(s Sync) Option {
	return func(o *pipe.Options) error {
		o.Sync = s
		return pipe.Within("synchronization %d", int(s), int(pipe.Deferred), int(pipe.Immediate))
	}
}

// WithPull leaves blocks at the writer until the reader fetches them. Without it the writer puts them
// into the reader's memory. A reader to which the writer
// is not mapped fetches blocks into a heap of its own. A call that reads starts to fetch all
// announced blocks, up to the width and as far as the heap has room. When blocks that were read and
// not freed fill that heap, Read waits for a Free.
func WithPull() Option {
	return func(o *pipe.Options) error { o.Pull = true; return nil }
}

// WithTwoPuts has a queued Write post data and flag one after the other instead of
// together. It serves comparisons. It is the writer's alone.
func WithTwoPuts() Option {
	return func(o *pipe.Options) error { o.Twice = true; return nil }
}

// WithFMA sets the switch point of queued writes in bytes. The device copies blocks up to
// it as they are posted. Larger ones leave from the block's memory. It is from 0 to 1 GiB; without it the
// job's switch point holds ([runtime.WithFMAMax]). It is the writer's alone.
func WithFMA(bytes int) Option {
	return func(o *pipe.Options) error {
		o.Fma = bytes
		return pipe.Within("switch point of %d bytes", bytes, 0, rmalloc.MaxHeap)
	}
}

// WithAtomicReads has a pull pipe's queued Read fetch small blocks by an atomic instead of a READ.
// The limit is a number of bytes, from 0 to 8. Without it Read uses the atomic on RDMA devices, where
// it was measured to be quicker. On tcp, where both cost the same, Read uses a READ. It is the
// reader's alone.
func WithAtomicReads(bytes int) Option {
	return func(o *pipe.Options) error {
		o.Atomic = bytes
		return pipe.Within("atomic reads of %d bytes", bytes, 0, pipe.WordSize)
	}
}

// WithWindow has the pipe run over a window, whose places have room for it; both ends give it. With nil
// it is as without. A pool of another team is [runtime.ErrTeam]. A pipe with a larger heap, width or number
// of blocks than the pool has room for is [ErrTooLarge].
func WithWindow(c *WindowPool) Option {
	return func(o *pipe.Options) error { o.Layer = overwindow.Layer(c); return nil }
}
