package netpipe

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// TestDialerMeetsListenerThatClosedBehindAccept has the dialer look once the listener has accepted
// its request, and then closed. Another request would leave the two ranks' ends out of step.
func TestDialerMeetsListenerThatClosedBehindAccept(t *testing.T) {
	testjob.EachSample(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			with, err := collect(nil)
			r.NoError(err)
			l, err := Listen(ctx, r.World)
			r.NoError(err)
			d, err := doorTo(r.World, 0, with.name)
			r.NoError(err)
			r.NoError(d.request(ctx, with))
			accepted, err := l.Accept()
			r.NoError(err)
			r.NoError(l.Close())
			end := (*pipe.TypedWriter[byte])(d.requests).End()
			r.NoError(end.Await(ctx, end.Heard))
			r.NoError(d.awaitEnd(ctx))
			dialed, err := d.enter(ctx, with)
			r.NoError(err)
			_, err = dialed.Write([]byte{5})
			r.NoError(err)
			got := make([]byte, 1)
			_, err = accepted.Read(got)
			r.NoError(err)
			r.Equal([]byte{5}, got)
			r.NoError(dialed.Close())
			r.NoError(accepted.Close())
		})
	})
}
