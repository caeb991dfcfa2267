package rpipe_test

import (
	"context"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A program may read statistics at any time, a reader's in any goroutine, and they are possible
// numbers.
func TestStatsStayWithinWidthWhileBlocksPass(t *testing.T) {
	const width, blocks = 2, 300
	body := func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
			for range blocks {
				r.NoError(w.Send(ctx, []byte{1}))
				r.LessOrEqual(w.Stats().InFlight, width)
			}
		}, func(rd *rpipe.Reader[byte]) {
			held := 0
			defer beside(func() { held = max(held, rd.Stats().Held) }, func() { r.LessOrEqual(held, 1) })()
			for range blocks {
				_, err := rd.Recv(ctx, nil)
				r.NoError(err)
			}
		}, append(opts, rpipe.WithWidth(width))...)
	}
	for _, c := range []testjob.Config{{Provider: "loop", Ranks: 2}, {Provider: "loop", Queued: true, Ranks: 2}, {Provider: "tcp", Ranks: 2}} {
		for _, mode := range []string{"push-deferred", "pull-deferred"} {
			t.Run(c.String()+"/"+mode, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) { body(ctx, r, pipetest.Modes[mode]) })
			})
		}
	}
}

// beside calls look again and again in a goroutine. The function it returns ends
// that and calls then.
func beside(look, then func()) (end func()) {
	over, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for over.Err() == nil {
			look()
			goruntime.Gosched()
		}
	})
	return func() {
		cancel()
		running.Wait()
		then()
	}
}
