package active

import (
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// An Option adjusts an Endpoint as Open opens it. All ranks give the same options, except
// WithWorkers and WithBound. A number out of an option's bounds is runtime.ErrRange of Open.
type Option func(*config)

// A config holds the options of an Endpoint.
type config struct {
	batch.Config
	workers int
}

const (
	// DefaultWorkers is the number of workers of a rank without WithWorkers.
	DefaultWorkers = 16
	// DefaultBatch is the number of bytes of messages that share a block without WithBatch.
	DefaultBatch = batch.DefaultBytes
	// DefaultBound is the longest time that a message of Send waits in a block without
	// WithBound.
	DefaultBound = batch.DefaultBound
)

// WithName names the endpoints of all ranks. Without it the name is "active". Endpoints of
// one name and team pair in the order of Open.
func WithName(name string) Option { return func(c *config) { c.Name = name } }

// WithWorkers sets how many handlers run at a time at this rank, from 1 to 65536. Without it that is
// DefaultWorkers. Each rank may give another number.
func WithWorkers(n int) Option { return func(c *config) { c.workers = n } }

// WithBatch sets how many bytes of messages share a block, from 1 to 16 MiB. Without it that is
// DefaultBatch. A block holds at least one message.
func WithBatch(bytes int) Option { return func(c *config) { c.Bytes = bytes } }

// WithBound sets the longest time that a message of Send waits in a block that is not full, 0 or more.
// Without it that is DefaultBound. With 0 the message waits for Flush. Each rank may give another bound.
func WithBound(d time.Duration) Option { return func(c *config) { c.Bound = d } }

// WithHeap sets how many bytes the requests from one rank to another may occupy, and the
// replies as well: a multiple of 64 up to 1 GiB with room for two blocks. Without it there is room for 16 blocks.
func WithHeap(bytes int) Option { return ofPipes(rpipe.WithHeap(bytes)) }

// WithWidth sets how many blocks to one rank may be written and not yet read, from 1 to 2^20. Without it
// there are 16.
func WithWidth(n int) Option { return ofPipes(rpipe.WithWidth(n)) }

// WithWindow has the endpoint's pipes run over a window, of which it takes four ends for each rank. With
// nil they run as without it. Errors are those of rpipe.WithWindow.
func WithWindow(over *rpipe.WindowPool) Option { return ofPipes(rpipe.WithWindow(over)) }

// ofPipes returns the option that gives each pipe an option.
func ofPipes(opt rpipe.Option) Option {
	return func(c *config) { c.Pipes = append(c.Pipes, opt) }
}
