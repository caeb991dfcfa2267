package active

import (
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// An Option adjusts an Endpoint as it is opened. All ranks give the same, except
// WithWorkers and WithBound.
type Option func(*config)

type config struct {
	batch.Config
	workers int
}

// Without options an Endpoint has these.
const (
	// DefaultWorkers bounds the handlers that run at a time at a rank.
	DefaultWorkers = 16
	DefaultBatch   = batch.DefaultBytes
	DefaultBound   = batch.DefaultBound
)

// WithName names the endpoints of all ranks. Without it the name is "active".
func WithName(name string) Option { return func(c *config) { c.Name = name } }

// WithWorkers sets how many handlers run at a time at this rank. It is this rank's
// alone.
func WithWorkers(n int) Option { return func(c *config) { c.workers = n } }

// WithBatch sets how many bytes of messages share a block.
func WithBatch(bytes int) Option { return func(c *config) { c.Bytes = bytes } }

// WithBound sets how long a message of Send waits at most in a block that is not full
// before it leaves; 0 has it wait for Flush. It is this rank's alone.
func WithBound(d time.Duration) Option { return func(c *config) { c.Bound = d } }

// WithHeap sets the bytes that requests, and replies, from one rank to another may occupy,
// a multiple of 64 with room for two blocks. Without it there is room for 16 blocks.
func WithHeap(bytes int) Option {
	return func(c *config) {
		if c.Heap = bytes; bytes == 0 {
			c.Heap = -1 // refused, as other wrong sizes are
		}
	}
}

// WithWidth sets how many blocks may be written to a rank and not yet read. Without it
// there are 16.
func WithWidth(n int) Option { return func(c *config) { c.Width = n } }

// WithWindow has the endpoint's pipes run over a window. With nil it is as without.
func WithWindow(pool *rpipe.WindowPool) Option { return func(c *config) { c.Pool = pool } }
