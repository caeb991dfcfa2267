package rpipe

import (
	"context"
	"time"
)

// moment is the key of contexts that have one.
type moment struct{}

// withMoment returns a context for the end of many pipes. It ends lastMoment after
// ctx does, and is the only moment that they get: if each took one of its own, to
// reach a rank that does not answer, thousands would take hours. What is not said by
// then the registry says later.
func withMoment(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Value(moment{}) != nil {
		return ctx, func() {}
	}
	longer, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), moment{}, true))
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(lastMoment)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}
