package wait

import "context"

// Context returns ctx, or context.Background for a nil one. Operations on mapped
// memory never look at their context, so a nil one works there: what waits takes
// it for one that never ends, and works alike over every provider.
func Context(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
