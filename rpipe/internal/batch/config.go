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
	Bytes int           // of records that a block gathers
	Bound time.Duration // that a record waits in a block
	Heap  int           // of each pipe; 0: Depth blocks
	Width int
	Pool  *rpipe.WindowPool
	Pipe  []rpipe.Option // of the pipes, which no option of a product sets
}

// Without options, pipes have room for Depth blocks of DefaultBytes each, which leave
// after DefaultBound.
const (
	Depth        = 16
	DefaultBytes = 4096
	DefaultBound = 500 * time.Microsecond
	mostBytes    = 1 << 24
)

// Default returns the configuration without options.
func Default(name string) Config {
	return Config{Name: name, Bytes: DefaultBytes, Bound: DefaultBound, Width: Depth}
}

// Pipes returns the options of the pipes for blocks of at least so many bytes. Their names
// are the caller's.
func (c *Config) Pipes(least int) ([]rpipe.Option, error) {
	if err := pipe.Within("batch of %d bytes", c.Bytes, 1, mostBytes); err != nil {
		return nil, err
	}
	if c.Bound < 0 {
		return nil, fmt.Errorf("bound of %v: %w: give 0 or more", c.Bound, runtime.ErrRange)
	}
	block := pipe.Line(max(c.Bytes, least))
	heap := c.Heap
	if heap == 0 {
		heap = Depth * block
	}
	if heap > 0 && heap < 2*block {
		return nil, fmt.Errorf("heap of %d bytes for batches of %d: %w: give room for two", heap, c.Bytes, runtime.ErrRange)
	}
	opts := []rpipe.Option{rpipe.WithHeap(heap), rpipe.WithWidth(c.Width), rpipe.WithBlocks(2 * Depth), rpipe.WithWindow(c.Pool)}
	return append(opts, c.Pipe...), nil
}
