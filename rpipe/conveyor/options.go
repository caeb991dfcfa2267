package conveyor

import (
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// An Option adjusts a conveyor as it is opened. All ranks give the same, except WithBound.
type Option func(*batch.Config)

// Without options a conveyor has these.
const (
	DefaultBatch = batch.DefaultBytes
	DefaultBound = batch.DefaultBound
)

// WithName names the conveyor. Without it the name is "conveyor".
func WithName(name string) Option { return func(c *batch.Config) { c.Name = name } }

// WithBatch sets how many bytes of records a conveyor gathers in a block.
func WithBatch(bytes int) Option { return func(c *batch.Config) { c.Bytes = bytes } }

// WithBound sets how long a record waits at most in a block that is not full before
// it leaves; 0 has it wait for Flush. It is this rank's alone.
func WithBound(d time.Duration) Option { return func(c *batch.Config) { c.Bound = d } }

// WithHeap sets the bytes that blocks from one rank to another may occupy, a multiple of
// 64 with room for two blocks. Without it there is room for 16 blocks.
func WithHeap(bytes int) Option {
	return func(c *batch.Config) {
		if c.Heap = bytes; bytes == 0 {
			c.Heap = -1 // refused, as other wrong sizes are
		}
	}
}

// WithWidth sets how many blocks may be written to a rank and not yet read. Without it
// there are 16.
func WithWidth(n int) Option { return func(c *batch.Config) { c.Width = n } }

// WithWindow has the conveyor's pipes run over a window. With nil it is as without.
func WithWindow(pool *rpipe.WindowPool) Option { return func(c *batch.Config) { c.Pool = pool } }
