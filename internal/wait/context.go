package wait

import "context"

// Context returns ctx, or context.Background if ctx is nil. Operations on mapped
// memory never look at their context, so a nil one works there. Context makes it
// work alike over every provider: a wait takes it for one that never ends.
func Context(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
