package pipe

import (
	"fmt"
	"time"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// An Option adjusts a pipe as it is opened. Both ends give the same options, except
// those that belong to one end alone.
type Option func(*Options) error

// Options holds the settings of a pipe.
type Options struct {
	Name    string
	Width   int
	Heap    int
	Blocks  int
	Policy  rmalloc.Policy
	Sync    Sync
	Pull    bool
	Served  bool // no pipe, but a heap that one end serves to the other
	Twice   bool
	Fma     int
	Atomic  int      // largest block that is fetched by an atomic; negative leaves it to the device
	Summary *Summary // of the aggregate that a reader belongs to
	Place   int      // its place among the pipes there
	Layer   Layer    // nil: the fabric
	// Patience bounds how long the reader gathers read and freed blocks before it tells
	// a writer that does not wait for them. Negative: no timer reminds the reader, which
	// tells the writer in its own calls.
	Patience time.Duration
}

// Without options a pipe has these.
const (
	DefaultWidth  = 64
	DefaultHeap   = 1 << 20
	DefaultBlocks = rmalloc.DefaultBlocks
)

const (
	// MaxWidth is far from where counts of 32 bits could be mistaken.
	MaxWidth  = 1 << 20
	MaxBlocks = 1 << 24
)

// Sync says when the writer learns of freed memory.
type Sync uint8

const (
	// Deferred: the reader gathers freed ranges and announces them in one write.
	// Alloc posts nothing; it may not know the latest.
	Deferred Sync = iota + 1
	// Immediate: each Alloc reads the freed ranges in one read. Free posts nothing.
	Immediate
)

// String returns the name. Kind: local.
func (s Sync) String() string {
	switch s {
	case Deferred:
		return "deferred"
	case Immediate:
		return "immediate"
	}
	return "unknown"
}

// Within returns an ErrRange unless n is in [least, most]. what describes n by a verb of package fmt.
func Within(what string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf(what+": %w [%d, %d]", n, runtime.ErrRange, least, most)
	}
	return nil
}

// Unwrap returns the options of a pipe that the options of a product stand for, behind the
// product's defaults.
func Unwrap[O ~func(*Options) error](opts []O, defaults ...Option) []Option {
	for _, opt := range opts {
		defaults = append(defaults, Option(opt))
	}
	return defaults
}

// Collect applies options to the defaults.
func Collect(opts []Option) (Options, error) {
	o := Options{Name: "pipe", Width: DefaultWidth, Heap: DefaultHeap, Blocks: DefaultBlocks, Policy: rmalloc.NextFit{}, Fma: -1, Atomic: -1,
		Patience: announceAfter}
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	if o.Sync == 0 {
		o.Sync = Deferred
		switch o.Policy.(type) {
		case rmalloc.BestFit, rmalloc.WorstFit:
			o.Sync = Immediate
		}
	}
	o.Blocks = min(o.Blocks, o.Heap/rmalloc.Granule)
	return o, nil
}

// layer returns the layer of pipes with these options.
func (o *Options) layer(t *team.Team) Layer {
	if o.Layer != nil {
		return o.Layer
	}
	return OverFabric(t)
}

// Largest returns how much data and how many flags an end has at most. Each end has a
// card, at most one ring of tags, and a heap or a stage.
func (o *Options) Largest() (data, flags int) {
	s := Spec{Heap: o.Heap, Width: o.Width, blocks: o.Blocks}
	return CardSize + s.tagBytes() + s.Heap, s.notifications() + 2
}
