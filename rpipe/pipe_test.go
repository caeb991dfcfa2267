package rpipe_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// eachMode runs f with two ranks, over every link and with every kind of pipe. The
// transports are dealt out to these: links are equal on all of them, as the suite of links
// in package pipe shows.
func eachMode(t *testing.T, f pipeBody) {
	for part, k := range kinds {
		for _, c := range testjob.Share(t.Name(), 2, part, len(kinds)) {
			t.Run(c.String()+"/"+k.name(), func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) { k.over()(f)(ctx, r, k.opts()) })
			})
		}
	}
}

// everyMode is eachMode of all kinds on every transport.
func everyMode(t *testing.T, f pipeBody) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		eachLink(t, func(t *testing.T, over func(f pipeBody) pipeBody, opts []rpipe.Option) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) { over(f)(ctx, r, opts) })
		})
	})
}

func TestReadReturnsBlocksInOrderThenEOF(t *testing.T) {
	everyMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rounds := testwatch.Rounds(200) // of blocks of 50 lengths
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[int32]) {
			for i := range rounds {
				b, err := w.Alloc(ctx, i%50)
				r.NoError(err)
				r.Equal(i%50, b.Len())
				for j := range b.Mem() {
					b.Mem()[j] = int32(i*100 + j)
				}
				r.NoError(w.Write(ctx, b))
			}
		}, func(rd *rpipe.Reader[int32]) {
			for i := range rounds {
				b, err := rd.Read(ctx)
				r.NoError(err)
				r.Len(b.Mem(), i%50)
				for j, v := range b.Mem() {
					r.EqualValues(i*100+j, v)
				}
				r.NoError(rd.Free(b))
			}
			for range 2 {
				_, err := rd.Read(ctx)
				r.Equal(io.EOF, err)
			}
		}, append(opts, rpipe.WithWidth(7), rpipe.WithHeap(4096))...)
	})
}
