package rpipe

// Ticks tells that the conveyor's clock will look at its lanes again.
func (c *Conveyor[T]) Ticks() bool { return c.clock.armed.Load() }
