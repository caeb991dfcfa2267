package conveyor

import "github.com/gopgas/gopgas/rpipe"

// WithPipe gives the conveyor's pipes an option.
func WithPipe(opt rpipe.Option) Option { return ofPipes(opt) }

// Ticks reports whether the conveyor's clock will look at its batches again.
func (c *Conveyor[T]) Ticks() bool { return c.out.Clock.Armed() }
