package rpipe

import (
	"fmt"
	"time"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/runtime"
)

// An Option adjusts a pipe as it is opened. Both ends give the same options, except
// those that belong to one end alone.
type Option func(*options) error

type options struct {
	name    string
	width   int
	heap    int
	blocks  int
	policy  Policy
	sync    Sync
	pull    bool
	twice   bool
	fma     int
	atomic  int           // largest block that is fetched by an atomic; negative leaves it to the device
	tally   *tally        // of the aggregate that a reader belongs to
	group   int           // its word there
	batch   int           // bytes of a conveyor's block
	workers int           // that run handlers
	bound   time.Duration // that a conveyor's record waits
	carrier *Carrier      // nil: the pipe lies on the fabric
	// patience bounds how long the reader gathers read and freed blocks before it tells
	// a writer that does not wait for them. Negative: no timer reminds the reader, which
	// tells the writer in its own calls.
	patience time.Duration
}

// Without options a pipe has these.
const (
	DefaultWidth  = 64
	DefaultHeap   = 1 << 20
	DefaultBlocks = rmalloc.DefaultBlocks
)

const (
	// maxWidth is far from where counts of 32 bits could be mistaken.
	maxWidth  = 1 << 20
	maxBlocks = 1 << 24
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
type Sync uint8

const (
	// Deferred: the reader gathers what is freed and announces it in one write.
	// Alloc posts nothing; it may not know the latest.
	Deferred Sync = iota + 1
	// Immediate: each Alloc asks for what was freed, in one read; Free posts
	// nothing.
	Immediate
)

func (s Sync) String() string {
	switch s {
	case Deferred:
		return "deferred"
	case Immediate:
		return "immediate"
	}
	return "unknown"
}

// WithName names the pipe. Two ends find each other by team, ranks and name: the
// writer's k-th opening of a name meets the reader's k-th.
func WithName(name string) Option {
	return func(o *options) error { o.name = name; return nil }
}

// WithWidth sets how many blocks may be written and not yet read.
func WithWidth(n int) Option {
	return func(o *options) error { o.width = n; return within("width of %d blocks", n, 1, maxWidth) }
}

// WithHeap sets the size of the pipe's heap in bytes, a multiple of 64. Blocks that are
// allocated and not yet freed share it.
func WithHeap(bytes int) Option {
	return func(o *options) error {
		o.heap = bytes
		if bytes%rmalloc.Granule != 0 {
			return fmt.Errorf("heap of %d bytes: %w: give a multiple of %d", bytes, runtime.ErrRange, rmalloc.Granule)
		}
		return within("heap of %d bytes", bytes, rmalloc.Granule, rmalloc.MaxHeap)
	}
}

// WithBlocks sets how many blocks may be allocated and not yet freed.
func WithBlocks(n int) Option {
	return func(o *options) error { o.blocks = n; return within("%d blocks", n, 1, maxBlocks) }
}

// WithPolicy sets where blocks go. BestFit and WorstFit synchronize immediately
// unless WithSync says otherwise.
func WithPolicy(p Policy) Option {
	return func(o *options) error { o.policy = p; return nil }
}

// WithSync sets when the writer learns of freed memory.
func WithSync(s Sync) Option {
	return func(o *options) error {
		o.sync = s
		return within("synchronization %d", int(s), int(Deferred), int(Immediate))
	}
}

// WithPull leaves blocks at the writer until the reader fetches them. A reader to which
// the writer is not mapped fetches blocks into a heap of its own. When blocks that were
// read and not freed fill that heap, Read waits for a Free.
func WithPull() Option {
	return func(o *options) error { o.pull = true; return nil }
}

// WithTwoPuts has a queued Write post data and flag one after the other instead of
// together. It serves comparisons. It is the writer's alone.
func WithTwoPuts() Option {
	return func(o *options) error { o.twice = true; return nil }
}

// WithFMA sets the switch point of queued writes in bytes: blocks up to it are
// copied by the device as they are posted, larger ones leave from the block's
// memory. Without it the job's switch point holds. It is the writer's alone.
func WithFMA(bytes int) Option {
	return func(o *options) error {
		o.fma = bytes
		return within("switch point of %d bytes", bytes, 0, rmalloc.MaxHeap)
	}
}

// WithAtomicReads has a pull pipe's queued Read fetch blocks of up to so many bytes,
// 8 at most, by a fetching atomic instead of a READ. Without it Read uses the atomic on
// RDMA devices, where it was measured to be quicker. On tcp, where both cost the same,
// Read uses a READ. It is the reader's alone.
func WithAtomicReads(bytes int) Option {
	return func(o *options) error {
		o.atomic = bytes
		return within("atomic reads of %d bytes", bytes, 0, wordSize)
	}
}

// WithCarrier has the pipe run over a window, whose berths have room for it; both
// ends give it. With nil it is as without.
func WithCarrier(c *Carrier) Option {
	return func(o *options) error { o.carrier = c; return nil }
}

func within(what string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf(what+": %w [%d, %d]", n, runtime.ErrRange, least, most)
	}
	return nil
}

func collect(opts []Option) (options, error) {
	o := options{name: "pipe", width: DefaultWidth, heap: DefaultHeap, blocks: DefaultBlocks, policy: NextFit{}, fma: -1, atomic: -1,
		patience: announceAfter}
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	if o.sync == 0 {
		o.sync = Deferred
		switch o.policy.(type) {
		case BestFit, WorstFit:
			o.sync = Immediate
		}
	}
	o.blocks = min(o.blocks, o.heap/rmalloc.Granule)
	return o, nil
}
