package rpipe

import (
	"context"
	"sync/atomic"
)

// crowded is add behind a queue that has no room while full is set.
func crowded(full *atomic.Bool, add func(ctx context.Context, n uint64) error) func(ctx context.Context, n uint64) error {
	return func(ctx context.Context, n uint64) error {
		if full.Load() {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return add(ctx, n)
	}
}

// Crowd has the counts of a writer's blocks find no room while full is set.
func (w *Writer[T]) Crowd(full *atomic.Bool) {
	h := &w.end.link.(*fabricLink).herald
	h.add = crowded(full, h.add)
}

// A Herald is one that adds to a number.
type Herald struct {
	herald
	Full  atomic.Bool
	count atomic.Uint64
}

func NewHerald() *Herald {
	h := &Herald{}
	h.add = crowded(&h.Full, func(_ context.Context, n uint64) error { h.count.Add(n); return nil })
	return h
}

func (h *Herald) Tell(ctx context.Context) error { return h.tell(ctx) }
func (h *Herald) Told() uint64                   { return h.count.Load() }
func (h *Herald) Hush()                          { h.hush() }
func (h *Herald) Tick()                          { h.tick() }
