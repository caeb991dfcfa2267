package conveyor

import (
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// WithPipe sets options of the conveyor's pipes.
func WithPipe(opts ...rpipe.Option) Option { return func(c *batch.Config) { c.Pipe = opts } }

// Ticks reports whether the conveyor's clock will look at its batches again.
func (c *Conveyor[T]) Ticks() bool { return c.clock.Armed() }
