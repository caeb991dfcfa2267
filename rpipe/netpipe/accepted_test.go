package netpipe_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/netpipe"
)

// TestDialReturnsConnectionAcceptedBeforeClose closes a listener at
// once after Accept, while the dialer has not met the connection yet.
func TestDialReturnsConnectionAcceptedBeforeClose(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 20 {
				if r.Me == 0 {
					l, err := netpipe.Listen(ctx, r.World)
					r.NoError(err)
					conn, err := l.Accept()
					r.NoError(err)
					r.NoError(l.Close())
					_, err = io.WriteString(conn, "hello")
					r.NoError(err)
					r.NoError(conn.Close())
				} else {
					conn, err := netpipe.Dial(ctx, r.World, 0)
					r.NoError(err)
					text, err := io.ReadAll(conn)
					r.NoError(err)
					r.Equal("hello", string(text))
					r.NoError(conn.Close())
				}
				r.NoError(r.World.Barrier(ctx))
			}
		})
	})
}
