package rpipe_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/verbs/driver"
)

// TestPullFetchesAheadOfRead counts gets: the first Read starts those of all blocks that are
// announced and for which there is room, and the next ones start none.
func TestPullFetchesAheadOfRead(t *testing.T) {
	for name, v := range map[string]struct {
		opts []rpipe.Option
		gets uint64 // of the first Read
	}{
		"all":      {nil, 5},
		"by width": {[]rpipe.Option{rpipe.WithWidth(3)}, 3},
		"by room":  {[]rpipe.Option{rpipe.WithHeap(2048)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			pipetest.Alone(t, pipetest.Queued, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
				l.Open(append(v.opts, rpipe.WithPull())...)
				gets := func(f func()) uint64 { return l.Cost(f).Posted[driver.OpRead] }
				written, counted := make(chan error, 5), make(chan struct{})
				go func() {
					for i := range 5 {
						if uint64(i) == v.gets {
							<-counted // a Flush is a get, too
						}
						written <- errors.Join(l.W.Send(ctx, fill(1000, i)), l.W.Flush(ctx))
					}
				}()
				for range v.gets {
					r.NoError(<-written)
				}
				read := func(i int) rpipe.Block[byte] {
					b, err := l.Rd.Read(ctx)
					r.NoError(err)
					r.Equal(fill(1000, i), b.Mem())
					return b
				}
				var first rpipe.Block[byte]
				r.Equal(v.gets, gets(func() { first = read(0) }))
				close(counted)
				r.Equal(1, l.Rd.Stats().Held, "blocks ahead of Read are not held")
				l.Free(first)
				for i := 1; i < 5; i++ {
					l.Free(read(i))
				}
				for range 5 - v.gets {
					r.NoError(<-written)
				}
				l.Close()
			})
		})
	}
}

// TestReadReturnsBlockWhoseGetWasCanceled has Reads end before they return blocks that are
// fetched ahead. Later Reads return all blocks, in order.
func TestReadReturnsBlockWhoseGetWasCanceled(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			const blocks = 200
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
				for i := range blocks {
					r.NoError(w.Send(ctx, fill(100, i)))
				}
				r.NoError(w.Close(ctx))
			}, func(rd *rpipe.Reader[byte]) {
				for i := 0; i < blocks; {
					call := ctx
					if i%2 == 0 {
						call = pipetest.Ended(ctx)
					}
					b, err := rd.Read(call)
					if call != ctx && errors.Is(err, context.Canceled) {
						b, err = rd.Read(ctx)
					}
					r.NoError(err)
					r.Equal(fill(100, i), b.Mem())
					r.NoError(rd.Free(b))
					i++
				}
				r.NoError(rd.Close(ctx))
			}, rpipe.WithPull(), rpipe.WithHeap(1<<14), rpipe.WithWindow(over))
		})
	})
}

// TestCloseReleasesMemoryBesideGets closes readers that fetch ahead.
func TestCloseReleasesMemoryBesideGets(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			var last *rpipe.Reader[byte]
			for round := range 20 {
				pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
					for range 10 {
						r.NoError(w.Send(ctx, fill(4096, round)))
					}
					r.NoError(r.World.Barrier(ctx))
					r.ErrorIs(w.Close(ctx), rpipe.ErrClosed)
				}, func(rd *rpipe.Reader[byte]) {
					last = rd
					r.NoError(r.World.Barrier(ctx))
					b, err := rd.Read(ctx)
					r.NoError(err)
					r.Equal(fill(4096, round), b.Mem())
				}, rpipe.WithPull())
			}
			for last != nil && pipetest.ReaderEnd(last).Registry.Lingering() > 0 {
				r.NoError(ctx.Err())
				team.Of(r.World).Progress()
			}
			r.NoError(r.World.Barrier(ctx))
			r.Less(pipetest.Used(r.World), int64(rpipe.DefaultHeap))
		})
	})
}

// fill returns n bytes that depend on a number.
func fill(n, number int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(number + i)
	}
	return b
}
