package pipe

import (
	"context"
	"time"
)

// A moment is the key of lastMoment in a context. When the context of a closing call
// ends, the end has lastMoment more to reach its peer. Ends that close together share
// one moment. With a moment each, thousands of ends would wait hours for a rank that
// does not answer. The registry says later what an end could not say by then.
type moment struct{}

// WithMoment returns ctx with the moment behind it.
func WithMoment(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Value(moment{}) != nil {
		return ctx, func() {}
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(lastMoment)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-longer.Done():
		}
	})
	return context.WithValue(ctx, moment{}, longer), func() {
		stop()
		cancel()
	}
}

// momentOf returns a context for calls of a closing end behind the end of ctx.
func momentOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if shared, ok := ctx.Value(moment{}).(context.Context); ok {
		return shared, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), lastMoment)
}
