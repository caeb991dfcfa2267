package conveyor

import (
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// An Option adjusts a conveyor as Open opens it. All ranks give the same options, except
// WithBound. A number out of an option's bounds is runtime.ErrRange of Open.
type Option func(*batch.Config)

const (
	// DefaultBatch is the number of bytes of records that a block gathers without WithBatch.
	DefaultBatch = batch.DefaultBytes
	// DefaultBound is the longest time that a record waits in a block without WithBound.
	DefaultBound = batch.DefaultBound
)

// WithName names the conveyor. Without it the name is "conveyor". Conveyors of one name
// and team pair in the order of Open.
func WithName(name string) Option { return func(c *batch.Config) { c.Name = name } }

// WithBatch sets how many bytes of records a block gathers, from 1 to 16 MiB. Without it that is
// DefaultBatch. A block holds at least one record.
func WithBatch(bytes int) Option { return func(c *batch.Config) { c.Bytes = bytes } }

// WithBound sets the longest time that a record waits in a block that is not full, 0 or more. Without it
// that is DefaultBound. With 0 the record waits for Flush. Each rank may give another bound.
func WithBound(d time.Duration) Option { return func(c *batch.Config) { c.Bound = d } }

// WithHeap sets how many bytes the blocks from one rank to another may occupy, a multiple
// of 64 up to 1 GiB with room for two blocks. Without it there is room for 16 blocks.
func WithHeap(bytes int) Option { return ofPipes(rpipe.WithHeap(bytes)) }

// WithWidth sets how many blocks to one rank may be written and not yet read, from 1 to 2^20. Without it
// there are 16.
func WithWidth(n int) Option { return ofPipes(rpipe.WithWidth(n)) }

// WithWindow has the conveyor's pipes run over a window, of which it takes two ends for each rank. With nil
// they run as without it. Errors are those of rpipe.WithWindow.
func WithWindow(over *rpipe.WindowPool) Option { return ofPipes(rpipe.WithWindow(over)) }

// ofPipes returns the option that gives each pipe an option.
func ofPipes(opt rpipe.Option) Option {
	return func(c *batch.Config) { c.Pipes = append(c.Pipes, opt) }
}
