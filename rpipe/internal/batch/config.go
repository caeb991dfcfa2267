package batch

import (
	"fmt"
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Config holds the options that conveyors and active messages have in common.
type Config struct {
	Name  string
	Bytes int            // of elements that a block gathers
	Bound time.Duration  // that an element waits in a block; 0: for ever
	Pipes []rpipe.Option // of each pipe, in place of those that Default implies
}

// Without options, pipes have room for Depth blocks of DefaultBytes each, which leave
// after DefaultBound.
const (
	Depth        = 16
	DefaultBytes = 4096
	DefaultBound = 500 * time.Microsecond

	maxBytes = 1 << 24
)

// Default returns the configuration without options.
func Default(name string) Config {
	return Config{Name: name, Bytes: DefaultBytes, Bound: DefaultBound}
}

// PipeOptions checks the configuration, and returns the options of pipes for blocks of at
// least so many bytes. The caller names the pipes. ErrRange: a value is out of its range,
// or a heap has no room for two blocks.
func (c *Config) PipeOptions(least int) ([]rpipe.Option, error) {
	if err := pipe.Within("batch of %d bytes", c.Bytes, 1, maxBytes); err != nil {
		return nil, err
	}
	if c.Bound < 0 {
		return nil, fmt.Errorf("bound of %v: %w: give 0 or more", c.Bound, runtime.ErrRange)
	}
	block := pipe.Line(max(c.Bytes, least))
	depth := func(o *pipe.Options) error { o.Heap = Depth * block; return nil }
	opts := append([]rpipe.Option{depth, rpipe.WithWidth(Depth), rpipe.WithBlocks(2 * Depth)}, c.Pipes...)
	o, err := pipe.Collect(opts)
	if err == nil {
		err = rpipe.WithHeap(o.Heap)(&o)
	}
	if err == nil && o.Heap < 2*block {
		err = fmt.Errorf("heap of %d bytes for batches of %d: %w: give room for two", o.Heap, c.Bytes, runtime.ErrRange)
	}
	return opts, err
}
