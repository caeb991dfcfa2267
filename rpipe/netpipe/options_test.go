package netpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
)

// TestOpeningCallsReturnErrRangeForBadOption has each of them return the error at once, under
// its own name. Dial finds no listener here: it would wait for one.
func TestOpeningCallsReturnErrRangeForBadOption(t *testing.T) {
	bad := netpipe.WithWidth(0)
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		for op, open := range map[string]func() error{
			"Listen":   func() error { _, err := netpipe.Listen(ctx, r.World, bad); return err },
			"Dial":     func() error { _, err := netpipe.Dial(ctx, r.World, 1-r.Me, bad); return err },
			"OpenConn": func() error { _, err := netpipe.OpenConn(ctx, r.World, 1-r.Me, bad); return err },
		} {
			err := open()
			r.ErrorIs(err, runtime.ErrRange, op)
			var failure *rpipe.OpError
			r.ErrorAs(err, &failure)
			r.Equal(op, failure.Op)
		}
	})
}
