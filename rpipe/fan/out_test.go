package fan_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

func TestFanOutReachesAllReaders(t *testing.T) {
	modes := []struct {
		name string
		opts []rpipe.Option
	}{{"deferred", nil}, {"immediate", []rpipe.Option{rpipe.WithSync(rpipe.Immediate)}}, {"two-puts", []rpipe.Option{rpipe.WithTwoPuts()}}}
	for part, mode := range modes {
		for _, c := range testjob.Share(t.Name(), 4, part, len(modes)) {
			t.Run(c.String()+"/"+mode.name, func(t *testing.T) {
				pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
					opts := []rpipe.Option{rpipe.WithWindow(over)}
					const blocks = 300
					opts = slices.Concat(opts, mode.opts, []rpipe.Option{rpipe.WithHeap(8192), rpipe.WithWidth(7)})
					content := func(i int) []int32 { return slices.Repeat([]int32{int32(i)}, i%200) }
					if r.Me > 0 {
						rd, err := rpipe.OpenReader[int32](ctx, r.World, 0, opts...)
						r.NoError(err)
						var held []rpipe.Block[int32]
						for i := range blocks {
							b, err := rd.Read(ctx)
							r.NoError(err)
							r.Equal(content(i), append([]int32{}, b.Mem()...))
							if held = append(held, b); len(held) == r.Me { // each frees in an order of its own
								for k := range held {
									r.NoError(rd.Free(held[(k+r.Me/2)%len(held)]))
								}
								held = held[:0]
							}
						}
						_, err = rd.Read(ctx)
						r.Equal(io.EOF, err)
						r.NoError(rd.Close(ctx))
						return
					}
					f, err := fan.OpenOut[int32](ctx, r.World, pipetest.Others(r.N), opts...)
					r.NoError(err)
					for i := range blocks {
						b, err := f.Alloc(ctx, i%200)
						r.NoError(err)
						copy(b.Mem(), content(i))
						r.NoError(f.Write(ctx, b))
						r.ErrorIs(f.Write(ctx, b), rpipe.ErrStale)
						r.ErrorIs(f.Free(b), rpipe.ErrStale)
					}
					r.NoError(f.Flush(ctx))
					r.NoError(f.Close(ctx))
					_, readers := f.Stats()
					r.Len(readers, 3)
					r.EqualValues(blocks, readers[2].Written)
				})
			})
		}
	}
}

// One Write reports a reader that dies. The remaining readers get all blocks.
func TestFanOutWritesOnAfterReaderLeaves(t *testing.T) {
	for name, leave := range map[string]func(ctx context.Context, r *testjob.Rank, rd *rpipe.Reader[int]){
		"dies":   func(_ context.Context, r *testjob.Rank, _ *rpipe.Reader[int]) { r.Die() },
		"closes": func(ctx context.Context, r *testjob.Rank, rd *rpipe.Reader[int]) { r.NoError(rd.Close(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
				const blocks = 200
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					opts := []rpipe.Option{rpipe.WithWidth(8), rpipe.WithHeap(4096)}
					if r.Me == 0 {
						f, err := fan.OpenOut[int](ctx, r.World, pipetest.Others(r.N), opts...)
						r.NoError(err)
						lost := 0
						for i := range blocks {
							b, err := f.Alloc(ctx, 1)
							r.NoError(err)
							b.Mem()[0] = i
							if err := f.Write(ctx, b); err != nil {
								var op *rpipe.OpError
								r.ErrorAs(err, &op)
								r.Equal(2, op.Peer)
								lost++
							}
						}
						r.Equal(1, lost)
						r.Equal(2, f.Readers())
						r.NoError(f.Close(ctx))
						return
					}
					rd, err := rpipe.OpenReader[int](ctx, r.World, 0, opts...)
					r.NoError(err)
					for i := range blocks {
						if i == 20 && r.Me == 2 {
							leave(ctx, r, rd)
							return
						}
						b, err := rd.Read(ctx)
						r.NoError(err)
						r.Equal(i, b.Mem()[0])
						r.NoError(rd.Free(b))
					}
					_, err = rd.Read(ctx)
					r.Equal(io.EOF, err)
					r.NoError(rd.Close(ctx))
				})
				if name == "dies" {
					require.ErrorContains(t, err, "rank 2")
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// A reader that frees nothing stops the writer; the others have the block by then.
// The write goes on where it stopped.
func TestFanOutWaitsForSlowReader(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []rpipe.Option{rpipe.WithWindow(over)}
			const width = 4
			opts = append(opts, rpipe.WithWidth(width), rpipe.WithHeap(64*64))
			switch r.Me {
			case 0:
				f, err := fan.OpenOut[int](ctx, r.World, []int{1, 2}, opts...)
				r.NoError(err)
				for i := range width {
					r.NoError(f.Send(ctx, []int{i}))
				}
				b, err := f.Alloc(ctx, 1)
				r.NoError(err)
				b.Mem()[0] = width
				for written := uint64(0); written <= width; { // until reader 2 has it
					short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
					r.ErrorIs(f.Write(short, b), context.DeadlineExceeded)
					r.NoError(ctx.Err())
					cancel()
					_, readers := f.Stats()
					r.EqualValues(width, readers[0].Written)
					written = readers[1].Written
				}
				other, err := f.Alloc(ctx, 1)
				r.NoError(err)
				r.ErrorIs(f.Write(ctx, other), fan.ErrUnfinished)
				r.NoError(f.Free(other))
				r.NoError(r.World.Barrier(ctx)) // reader 2 has it
				r.NoError(r.World.Barrier(ctx)) // reader 1 reads from here on
				r.NoError(f.Write(ctx, b))
				r.NoError(f.Close(ctx))
			default:
				rd, err := rpipe.OpenReader[int](ctx, r.World, 0, opts...)
				r.NoError(err)
				read := func(i int) {
					b, err := rd.Read(ctx)
					r.NoError(err)
					r.Equal(i, b.Mem()[0])
					r.NoError(rd.Free(b))
				}
				for i := range width + 1 {
					if r.Me == 2 {
						read(i)
					}
				}
				r.NoError(r.World.Barrier(ctx))
				r.NoError(r.World.Barrier(ctx))
				for i := range width + 1 {
					if r.Me == 1 {
						read(i)
					}
				}
				_, err = rd.Read(ctx)
				r.Equal(io.EOF, err)
				r.NoError(rd.Close(ctx))
			}
		})
	})
}

func TestFanOutReturnsTypedErrors(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		_, err := fan.OpenOut[int](ctx, r.World, nil)
		r.ErrorIs(err, runtime.ErrRange)
		_, err = fan.OpenOut[int](ctx, nil, []int{0})
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = fan.OpenOut[int](ctx, r.World, []int{0, 1})
		r.ErrorIs(err, runtime.ErrRange)
		_, err = fan.OpenOut[int](ctx, r.World, []int{0}, rpipe.WithPull())
		r.ErrorIs(err, errors.ErrUnsupported)

		f, err := fan.OpenOut[int](ctx, r.World, []int{0}, rpipe.WithHeap(128), rpipe.WithName("f"))
		r.NoError(err)
		_, err = f.Alloc(ctx, 17)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		_, err = f.Alloc(ctx, -1)
		r.ErrorIs(err, runtime.ErrRange)
		r.ErrorIs(f.Write(ctx, rpipe.Block[int]{}), rpipe.ErrForeign)
		r.NoError(f.Close(ctx))
		r.NoError(f.Close(ctx))
		_, err = f.Alloc(ctx, 1)
		r.ErrorIs(err, rpipe.ErrClosed)
	})
}

// A write to many readers is one post to each, from the block's own memory.
func TestFanOutPostsOncePerReader(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Queued, pipetest.NIC} {
		pipetest.Alone(t, c, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
			const readers = 5
			f, err := fan.OpenOut[byte](ctx, r.World, make([]int, readers))
			r.NoError(err)
			var ends []*rpipe.Reader[byte]
			for range readers {
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0)
				r.NoError(err)
				ends = append(ends, rd)
			}
			r.NoError(f.Send(ctx, []byte("connect")))
			b, err := f.Alloc(ctx, 5000)
			r.NoError(err)
			l.Spy.Start()
			cost := l.Cost(func() { r.NoError(f.Write(ctx, b)) })
			r.EqualValues(readers, cost.PostCalls)
			r.EqualValues(2*readers, cost.Requests(), "block and flag")
			same := 0
			for _, segment := range l.Spy.Stop() {
				if len(segment.Mem) == 5000 {
					r.Same(&b.Mem()[0], &segment.Mem[0])
					same++
				}
			}
			r.Equal(readers, same)
			for _, rd := range ends {
				for range 2 {
					_, err := rd.Recv(ctx, nil)
					r.NoError(err)
				}
				r.NoError(rd.Close(ctx))
			}
			r.NoError(f.Close(ctx))
		})
	}
}

func TestFanOutAllocatesNothingPerBlock(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				f, err := fan.OpenOut[byte](ctx, r.World, make([]int, 3), rpipe.WithWidth(8))
				r.NoError(err)
				var ends []*rpipe.Reader[byte]
				for range 3 {
					rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, rpipe.WithWidth(8))
					r.NoError(err)
					ends = append(ends, rd)
				}
				round := func() {
					b, _ := f.Alloc(ctx, 500)
					_ = f.Write(ctx, b)
					for _, rd := range ends {
						b, _ := rd.Read(ctx)
						_ = rd.Free(b)
					}
				}
				round()
				r.Zero(r.Allocs(500, round))
				for _, rd := range ends {
					r.NoError(rd.Close(ctx))
				}
				r.NoError(f.Close(ctx))
			})
		})
	}
}
