package testjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// outlived shows the goroutines' stacks and ends this process if a job goes on
// after the watchdog has ended its context. The caller calls stop when the job is
// over.
func outlived(ctx context.Context) (stop func()) {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), testwatch.ErrStuck) {
			return
		}
		late := time.NewTimer(2 * testwatch.Patience())
		defer late.Stop()
		select {
		case <-over:
		case <-late.C:
			stacks := make([]byte, 4<<20)
			fmt.Fprintf(os.Stderr, "%s\n", stacks[:goruntime.Stack(stacks, true)])
			panic("a job waits on, although its context has ended")
		}
	})
	return func() { close(over) }
}
