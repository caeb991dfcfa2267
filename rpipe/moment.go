package rpipe

import (
	"context"
	"time"
)

// A context whose call has ended leaves an end a moment more to reach the other one:
// lastMoment. Of many ends that are closed together each has the same moment, which
// hangs on their context: if each took one of its own to reach a rank that does not
// answer, thousands would take hours. What is not said by then the registry says
// later.
type moment struct{}

// withMoment returns ctx with the moment behind it.
func withMoment(ctx context.Context) (context.Context, context.CancelFunc) {
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

// momentOf returns a context for what comes behind the end of ctx.
func momentOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if shared, ok := ctx.Value(moment{}).(context.Context); ok {
		return shared, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), lastMoment)
}
