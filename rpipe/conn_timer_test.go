package rpipe_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
)

// TestAConnIsMovedByNoTimer sends so much through narrow connections that each block
// waits for an earlier one to be read and freed. The timer that announces what nobody
// has asked for never comes: who waits is woken by what it waits for.
func TestAConnIsMovedByNoTimer(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for name, opts := range map[string][]rpipe.Option{
			"width":  {rpipe.WithHeap(2048), rpipe.WithWidth(2)},
			"heap":   {rpipe.WithHeap(1024), rpipe.WithWidth(64)},
			"blocks": {rpipe.WithHeap(2048), rpipe.WithBlocks(1)},
			"pull":   {rpipe.WithHeap(1024), rpipe.WithPull()},
			"asks":   {rpipe.WithHeap(1024), rpipe.WithPolicy(rpipe.BestFit{})},
		} {
			t.Run(name, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					conn, err := rpipe.OpenConn(ctx, r.World, 1-r.Me, append(opts, rpipe.WithoutReminder())...)
					r.NoError(err)
					const bytes = 64 << 10
					if r.Me == 0 {
						_, err = conn.Write(make([]byte, bytes))
						r.NoError(err)
					} else {
						n, err := io.ReadFull(conn, make([]byte, bytes))
						r.NoError(err)
						r.Equal(bytes, n)
					}
					r.NoError(r.World.Barrier(ctx))
					r.NoError(conn.Close())
				})
			})
		}
	})
}
