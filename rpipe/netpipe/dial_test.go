package netpipe_test

import (
	"context"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/netpipe"
)

// scanty bounds the memory that a rank may keep of failed connections.
const scanty = 2 << 20

// TestFailedDialsReleaseMemory dials a rank that does not listen, more often than
// its own memory would have room for.
func TestFailedDialsReleaseMemory(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				for range 20 {
					short, cancel := context.WithTimeout(ctx, time.Millisecond)
					_, err := netpipe.Dial(short, r.World, 1, netpipe.WithHeap(1<<20))
					cancel()
					r.ErrorIs(err, context.DeadlineExceeded)
				}
				r.Less(used(r.World), int64(scanty))
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// TestUnacceptedConnectionsReleaseMemory has listeners close before they
// accept waiting dialers, and before they hear of dialers that have given up.
func TestUnacceptedConnectionsReleaseMemory(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			heap := netpipe.WithHeap(1 << 20)
			if r.Me == 1 {
				for range 10 {
					l, err := netpipe.Listen(ctx, r.World, heap)
					r.NoError(err)
					r.NoError(r.World.Barrier(ctx)) // rank 0 has dialed and given up
					r.NoError(l.Close())
				}
				l, err := netpipe.Listen(ctx, r.World, heap)
				r.NoError(err)
				served := echo(r, l)
				r.NoError(r.World.Barrier(ctx))
				r.NoError(l.Close())
				served()
				return
			}
			for range 10 {
				short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				_, err := netpipe.Dial(short, r.World, 1, heap)
				cancel()
				r.ErrorIs(err, context.DeadlineExceeded)
				r.NoError(r.World.Barrier(ctx))
			}
			conn, err := netpipe.Dial(ctx, r.World, 1, heap)
			r.NoError(err)
			r.EqualValues(5, request(r, conn, 5))
			for used(r.World) >= scanty {
				r.NoError(ctx.Err(), "memory does not come back")
				time.Sleep(time.Millisecond)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}
