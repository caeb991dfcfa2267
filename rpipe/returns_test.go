package rpipe_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// The writer gets each tag once after a Sync that succeeds or is given up, whether or
// not the device copies so many tags. A second copy of a tag would stay in the ring,
// and the writer would read it a lap later.
func TestCanceledSyncSendsTagsOnce(t *testing.T) {
	const blocks, heap = 24, 24 * 64
	rounds := testwatch.Rounds(60)
	for name, extra := range map[string][]runtime.Option{
		"bulk":      {runtime.WithFMAMax(1)},
		"disturbed": {runtime.WithFMAMax(16), pipetest.Disturbed(3)},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				for link, over := range links {
					t.Run(link, func(t *testing.T) {
						c.Run(t, func(ctx context.Context, r *testjob.Rank) {
							over(exchange(heap, rounds, func(i int) int { return 2 + i%23 }))(ctx, r, []rpipe.Option{rpipe.WithHeap(heap), rpipe.WithWidth(blocks), rpipe.WithBlocks(blocks)})
						}, extra...)
					})
				}
			})
		})
	}
}

// The reader announces what a Sync gave up, without the announcer and without a further
// call of the pipe.
func TestReaderAnnouncesTagsOfCanceledSync(t *testing.T) {
	const heap = 4096
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for link, over := range links {
			t.Run(link, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					over(func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
						var full atomic.Bool
						pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
							r.NoError(w.Send(ctx, make([]byte, 64)))
							r.NoError(r.World.Barrier(ctx), "the Sync is given up")
							b, err := w.Alloc(ctx, heap)
							r.NoError(err)
							r.NoError(w.Free(b))
							r.NoError(r.World.Barrier(ctx))
						}, func(rd *rpipe.Reader[byte]) {
							b, err := rd.Read(ctx)
							r.NoError(err)
							pipetest.Clog(pipetest.ReaderEnd(rd), &full)
							full.Store(true)
							r.NoError(rd.Free(b))
							short, cancel := context.WithTimeout(ctx, time.Millisecond)
							r.ErrorIs(rd.Sync(short), context.DeadlineExceeded)
							cancel()
							full.Store(false)
							r.NoError(r.World.Barrier(ctx))
							r.NoError(r.World.Barrier(ctx), "the writer has all of its memory")
							_, err = rd.Read(ctx)
							r.Equal(io.EOF, err)
						}, opts...)
					})(ctx, r, []rpipe.Option{rpipe.WithHeap(heap), pipetest.WithoutAnnouncer()})
				})
			})
		}
	})
}

// More tags than one put copies leave in several, of which the last one tells.
func TestAnnouncementCarriesManyTags(t *testing.T) {
	const blocks, heap = 10_000, 10_000 * 64
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			all := func(int) int { return blocks }
			exchange(heap, testwatch.Rounds(2), all)(ctx, r, []rpipe.Option{rpipe.WithHeap(heap), rpipe.WithWidth(blocks), rpipe.WithBlocks(blocks)})
		})
	})
}

// exchange has the reader free every second block of a batch before the others, and
// announce both halves twice. Behind each batch the writer's heap is empty.
func exchange(heap, rounds int, batch func(i int) int) pipeBody {
	return func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
			for i := range rounds {
				for range batch(i) {
					r.NoError(w.Send(ctx, []byte{byte(i)}))
				}
				b, err := w.Alloc(ctx, heap)
				r.NoError(err, "all was freed")
				r.NoError(w.Free(b))
			}
		}, func(rd *rpipe.Reader[byte]) {
			for i := range rounds {
				var got []rpipe.Block[byte]
				for range batch(i) {
					b, err := rd.Read(ctx)
					r.NoError(err)
					r.EqualValues(i, b.Mem()[0])
					got = append(got, b)
				}
				for first := range 2 {
					for k := first; k < len(got); k += 2 {
						r.NoError(rd.Free(got[k]))
					}
					_ = rd.Sync(over) // there may be no room in the queue
					r.NoError(rd.Sync(ctx))
				}
			}
			_, err := rd.Read(ctx)
			r.Equal(io.EOF, err)
		}, opts...)
	}
}
