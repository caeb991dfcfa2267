package rpipe_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// TestPipeNeedsNoTimer sends so much through narrow pipes that each block waits for
// an earlier one to be read and freed. The timer that announces freed memory never
// comes: a writer that waits wakes its reader.
func TestPipeNeedsNoTimer(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for name, opts := range map[string][]rpipe.Option{
			"width":  {rpipe.WithHeap(2048), rpipe.WithWidth(2)},
			"heap":   {rpipe.WithHeap(1024), rpipe.WithWidth(64)},
			"blocks": {rpipe.WithHeap(2048), rpipe.WithBlocks(1)},
			"pull":   {rpipe.WithHeap(1024), rpipe.WithPull()},
			"looks":  {rpipe.WithHeap(1024), rpipe.WithPolicy(rpipe.BestFit{})},
		} {
			t.Run(name, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					const size = 256
					blocks := pipetest.Fewer(256)
					pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
						for range blocks {
							r.NoError(w.Send(ctx, make([]byte, size)))
						}
					}, func(rd *rpipe.Reader[byte]) {
						for range blocks {
							n, err := rd.Recv(ctx, make([]byte, size))
							r.NoError(err)
							r.Equal(size, n)
						}
						_, err := rd.Read(ctx)
						r.Equal(io.EOF, err)
					}, append(opts, pipetest.WithoutAnnouncer())...)
				})
			})
		}
	})
}
