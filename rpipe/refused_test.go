package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A healthy rank may refuse writes when its memory is gone. A call that waits for that
// rank then gets an error, though the rank's health is good.
func TestRefusedWriteEndsWait(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		if c.Mapped() {
			t.Skip("stores are not refused")
		}
		refused(t, c)
	})
}

func refused(t *testing.T, c testjob.Config) {
	// The reader's end is beyond use: its rank need not end well.
	over := make(chan struct{})
	_ = c.Try(t, func(ctx context.Context, r *testjob.Rank) {
		opts := []rpipe.Option{rpipe.WithWidth(2)}
		if r.Me == 1 {
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(pipetest.Withdraw(pipetest.ReaderEnd(rd)))
			r.NoError(r.World.Barrier(ctx))
			select {
			case <-over:
			case <-ctx.Done():
			}
			return
		}
		defer close(over)
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte{1}))
		r.NoError(w.Flush(ctx))
		r.NoError(r.World.Barrier(ctx))
		r.NoError(r.World.Barrier(ctx))
		for err == nil { // at the latest the one that the width stops
			err = w.Send(ctx, []byte{2})
		}
		var refused *fabric.RankError
		r.ErrorAs(err, &refused)
		r.Equal(1, refused.Rank)
	})
}
