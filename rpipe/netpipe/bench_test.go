package netpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/netpipe"
)

// BenchmarkDial dials, requests 8 bytes, and closes.
func BenchmarkDial(b *testing.B) {
	for _, c := range []testjob.Config{{Provider: "shm", Ranks: 2}, {Provider: "tcp", Ranks: 2}} {
		b.Run(c.Provider, func(b *testing.B) {
			c.Run(b, func(ctx context.Context, r *testjob.Rank) {
				if r.Me == 0 {
					l, err := netpipe.Listen(ctx, r.World)
					r.NoError(err)
					served := echo(r, l)
					r.NoError(r.World.Barrier(ctx))
					r.NoError(l.Close())
					served()
					return
				}
				for i := range uint64(b.N) {
					c, err := netpipe.Dial(ctx, r.World, 0)
					r.NoError(err)
					r.Equal(i, request(r, c, i))
				}
				r.NoError(r.World.Barrier(ctx))
			})
		})
	}
}
