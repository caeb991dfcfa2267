package rpipe_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// longSizes are lengths around the bounds of blocks that a program fills in memory of the
// writer's own, where the reader is mapped.
var longSizes = [...]int{4<<10 - 1, 4 << 10, 64 << 10, 512 << 10}

// TestLongBlocksAreWrittenInAnyOrder allocates blocks of all lengths, and writes them from the
// last to the first: whole, a part by WriteFirst, or not at all. A Send comes between them.
func TestLongBlocksAreWrittenInAnyOrder(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
			for lap := range 3 {
				var blocks []rpipe.Block[byte]
				for i, n := range longSizes {
					b, err := w.Alloc(ctx, n)
					r.NoError(err)
					copy(b.Mem(), bytes.Repeat([]byte{byte(lap<<4 + i)}, n))
					blocks = append(blocks, b)
				}
				for i := len(blocks) - 1; i >= 0; i-- {
					switch (i + lap) % 3 {
					case 0:
						r.NoError(w.Write(ctx, blocks[i]))
					case 1:
						r.NoError(w.WriteFirst(ctx, blocks[i], longSizes[i]/3))
					case 2:
						r.NoError(w.Free(blocks[i]))
						r.NoError(w.Send(ctx, bytes.Repeat([]byte{byte(lap<<4 + i)}, longSizes[i]/2)))
					}
				}
			}
		}, func(rd *rpipe.Reader[byte]) {
			for lap := range 3 {
				for i := len(longSizes) - 1; i >= 0; i-- {
					b, err := rd.Read(ctx)
					r.NoError(err)
					n := [...]int{longSizes[i], longSizes[i] / 3, longSizes[i] / 2}[(i+lap)%3]
					r.True(bytes.Equal(bytes.Repeat([]byte{byte(lap<<4 + i)}, n), b.Mem()), "lap %d, block %d", lap, i)
					r.NoError(rd.Free(b))
				}
			}
		}, opts...)
	})
}

// TestLongBlockLiesInMemoryOfTheWritersOwn fills a block and finds the reader's heap unchanged
// until Write. The next block takes the same memory.
func TestLongBlockLiesInMemoryOfTheWritersOwn(t *testing.T) {
	pipetest.Alone(t, pipetest.Mapped, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open()
		heap := func(b rpipe.Block[byte]) byte { return pipetest.WriterEnd(l.W).Mem[b.Addr().Offset()] }
		for _, n := range append(longSizes[:], 512<<10+1) {
			own := n >= 4<<10 && n <= 512<<10
			b := l.Alloc(n)
			b.Mem()[0] = 1
			r.Equal(own, heap(b) == 0, "%d bytes", n)
			r.NoError(l.W.Write(ctx, b))
			r.EqualValues(1, heap(b))
			read := l.Read(b)
			read.Mem()[0] = 0
			l.Free(read)
			next := l.Alloc(n)
			r.True(!own || &next.Mem()[0] == &b.Mem()[0], "%d bytes", n)
			r.NoError(l.W.Free(next))
		}
		l.Close()
	})
}
