package fan_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

func TestFanInReadsAllWritersInOrder(t *testing.T) {
	for name, mode := range pipetest.Modes {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
				pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
					opts := []rpipe.Option{rpipe.WithWindow(over)}
					blocks := pipetest.Fewer(100)
					opts = slices.Concat(opts, mode, []rpipe.Option{rpipe.WithHeap(4096), rpipe.WithWidth(5)})
					if r.Me > 0 {
						w, err := rpipe.OpenWriter[int](ctx, r.World, 0, opts...)
						r.NoError(err)
						for i := range blocks {
							r.NoError(w.Send(ctx, []int{r.Me, i}))
						}
						r.NoError(w.Close(ctx))
						return
					}
					f, err := fan.OpenIn[int](ctx, r.World, pipetest.Others(r.N), opts...)
					r.NoError(err)
					next := make([]int, r.N)
					for b, err := range f.All(ctx) {
						r.NoError(err)
						r.Equal([]int{b.From + 1, next[b.From]}, b.Mem())
						next[b.From]++
						r.NoError(f.Free(b.Block))
						r.ErrorIs(f.Free(b.Block), rpipe.ErrStale)
					}
					r.Equal([]int{blocks, blocks, blocks, 0}, next)
					r.Zero(f.Stats().Open)
					r.Zero(f.Stats().Held)
					_, from, err := f.Read(ctx)
					r.Equal(io.EOF, err)
					r.Equal(-1, from)
					r.NoError(f.Close(ctx))
				})
			})
		})
	}
}

// A writer that never stops must not keep the others' blocks from being read: a
// block waits for at most one of each other pipe.
func TestFanInReadsQuietWriterBesideBusyOne(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []rpipe.Option{rpipe.WithWindow(over)}
			const blocks = 60
			opts = append(opts, rpipe.WithHeap(32<<10))
			switch r.Me {
			case 1: // has more to say than anyone reads
				w, err := rpipe.OpenWriter[int](ctx, r.World, 0, opts...)
				r.NoError(err)
				for err == nil {
					err = w.Send(ctx, []int{0})
				}
				r.ErrorIs(err, rpipe.ErrClosed)
				_ = w.Close(ctx)
			case 2:
				w, err := rpipe.OpenWriter[int](ctx, r.World, 0, opts...)
				r.NoError(err)
				for i := range blocks {
					r.NoError(w.Send(ctx, []int{i}))
				}
				r.NoError(w.Close(ctx))
			case 0:
				f, err := fan.OpenIn[int](ctx, r.World, []int{1, 2}, opts...)
				r.NoError(err)
				run, longest := 0, 0
				for quiet := 0; quiet < blocks; {
					b, from, err := f.Read(ctx)
					r.NoError(err)
					r.NoError(f.Free(b))
					if from == 1 {
						r.Equal(quiet, b.Mem()[0])
						quiet, run = quiet+1, 0
					} else if quiet > 0 {
						run++
						longest = max(longest, run)
					}
				}
				t.Logf("at most %d blocks of the flood between two of the other writer", longest)
				r.NoError(f.Close(ctx))
			}
		})
	})
}

// With all pipes full, each pipe comes once before any comes again.
func TestFanInReadsPipesInTurn(t *testing.T) {
	c := testjob.Config{Provider: "loop", Ranks: 1}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		const pipes, rounds = 200, 3
		f, writers := pipetest.FanOfMany(ctx, r, pipes)
		for range rounds {
			for i, w := range writers {
				r.NoError(w.Send(ctx, []int32{int32(i)}))
			}
		}
		count := make([]int, pipes)
		for k := range pipes * rounds {
			b, from, err := f.Read(ctx)
			r.NoError(err)
			r.EqualValues(from, b.Mem()[0])
			r.NoError(f.Free(b))
			count[from]++
			r.Equal(1+k/pipes, count[from])
		}
		pipetest.CloseMany(ctx, r, f, writers)
	})
}

// TestFanInSkipsIdlePipes counts looks: they do not grow with the number of idle
// pipes.
func TestFanInSkipsIdlePipes(t *testing.T) {
	for _, pipes := range []int{64, 640, 2000} {
		c := testjob.Config{Provider: "loop", Ranks: 1}
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			f, writers := pipetest.FanOfMany(ctx, r, pipes)
			_, _, err := f.TryRead()
			r.ErrorIs(err, rpipe.ErrWouldBlock)
			r.Zero(f.Stats().Looks)
			for i := range 100 {
				r.NoError(writers[i*17%pipes].Send(ctx, []int32{1}))
				b, from, err := f.Read(ctx)
				r.NoError(err)
				r.Equal(i*17%pipes, from)
				r.NoError(f.Free(b))
			}
			r.LessOrEqual(f.Stats().Looks, uint64(100*2))
			pipetest.CloseMany(ctx, r, f, writers)
		})
	}
}

// TestFanInGivesFullPipesEqualTurns keeps all pipes full.
func TestFanInGivesFullPipesEqualTurns(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		const pipes, rounds = 40, 50
		opts := []rpipe.Option{rpipe.WithWidth(3)}
		f, err := fan.OpenIn[int32](ctx, r.World, make([]int, pipes), opts...)
		r.NoError(err)
		writers := make([]*rpipe.Writer[int32], pipes)
		for i := range writers {
			writers[i], err = rpipe.OpenWriter[int32](ctx, r.World, 0, opts...)
			r.NoError(err)
		}
		fill := func() {
			for i, w := range writers {
				for err = nil; err == nil; {
					err = w.TrySend([]int32{int32(i)})
				}
				r.ErrorIs(err, rpipe.ErrWouldBlock)
			}
		}
		count := make([]int, pipes)
		for range pipes * rounds {
			fill()
			b, from, err := f.Read(ctx)
			r.NoError(err)
			r.EqualValues(from, b.Mem()[0])
			r.NoError(f.Free(b))
			count[from]++
		}
		r.Equal(rounds, slices.Min(count), "blocks of each pipe: %v", count)
		left := 0
		for _, w := range writers {
			left += w.Stats().InFlight
		}
		for range left {
			b, _, err := f.Read(ctx)
			r.NoError(err)
			r.NoError(f.Free(b))
		}
		pipetest.CloseMany(ctx, r, f, writers)
	})
}

func TestFanInReturnsErrRankDeadForOnePipe(t *testing.T) {
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		const blocks = 50
		var lost atomic.Bool
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 0 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 0, pipetest.Small...)
				r.NoError(err)
				for i := range blocks {
					if r.Me == 2 && i == blocks/2 {
						r.NoError(w.Flush(ctx))
						r.Die()
					}
					for r.Me == 3 && i == blocks/2 && !lost.Load() {
						r.NoError(ctx.Err())
					}
					r.NoError(w.Send(ctx, []int{i}))
				}
				r.NoError(w.Close(ctx))
				return
			}
			f, err := fan.OpenIn[int](ctx, r.World, pipetest.Others(r.N), pipetest.Small...)
			r.NoError(err)
			got := make([]int, 3)
			for b, err := range f.All(ctx) {
				if err != nil {
					r.Equal(1, b.From)
					r.ErrorIs(err, runtime.ErrRankDead)
					r.False(lost.Swap(true), "one error")
					continue
				}
				r.Equal(got[b.From], b.Mem()[0])
				got[b.From]++
				r.NoError(f.Free(b.Block))
			}
			r.Equal([]int{blocks, blocks / 2, blocks}, got, "all that arrived was read")
			r.NoError(f.Close(ctx))
		})
		require.True(t, lost.Load(), "%v", err)
		require.ErrorContains(t, err, "rank 2")
	})
}

// A fan-in does not wait for writers that close before it connects, or that differ.
func TestFanInFindsWritersThatWriteNothing(t *testing.T) {
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
				pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
					opts := []rpipe.Option{rpipe.WithWindow(over)}
					if r.Me == 0 && late {
						r.NoError(r.World.Barrier(ctx))
					}
					switch r.Me {
					case 0:
						f, err := fan.OpenIn[int](ctx, r.World, pipetest.Others(r.N), append(opts, pipetest.Small...)...)
						r.NoError(err)
						differ := 0
						for b, err := range f.All(ctx) {
							r.Equal(1, b.From)
							r.ErrorIs(err, runtime.ErrMismatch)
							differ++
						}
						r.Equal(1, differ)
						r.NoError(f.Close(ctx))
					case 2:
						w, err := rpipe.OpenWriter[int](ctx, r.World, 0, append(opts, rpipe.WithHeap(4096))...)
						r.NoError(err)
						if late {
							r.NoError(r.World.Barrier(ctx))
						}
						r.ErrorIs(w.Send(ctx, []int{1}), runtime.ErrMismatch)
						r.NoError(w.Close(ctx))
						return
					default:
						w, err := rpipe.OpenWriter[int](ctx, r.World, 0, append(opts, pipetest.Small...)...)
						r.NoError(err)
						r.NoError(w.Close(ctx))
						if late {
							r.NoError(r.World.Barrier(ctx))
						}
					}
				})
			})
		}
	})
}

func TestFanInReturnsTypedErrors(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		_, err := fan.OpenIn[int](ctx, r.World, nil)
		r.ErrorIs(err, runtime.ErrRange)
		_, err = fan.OpenIn[int](ctx, nil, []int{0})
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = fan.OpenIn[int](ctx, r.World, []int{0, 0, 1})
		r.ErrorIs(err, runtime.ErrRange)
		_, err = fan.OpenIn[*int](ctx, r.World, []int{0})
		r.ErrorIs(err, rpipe.ErrType)

		f, err := fan.OpenIn[int](ctx, r.World, []int{0})
		r.NoError(err)
		short, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("enough"))
		_, from, err := f.Read(short)
		r.ErrorContains(err, "enough")
		r.Equal(-1, from)
		r.ErrorIs(f.Free(rpipe.Block[int]{}), rpipe.ErrForeign)
		r.NoError(f.Close(ctx))
		r.NoError(f.Close(ctx))
		_, _, err = f.Read(ctx)
		r.ErrorIs(err, rpipe.ErrClosed)
	})
}

// An opening that fails for its arguments is none: the pairs to come are those that
// would have come without it.
func TestFailedOpenInKeepsPairs(t *testing.T) {
	for name, open := range map[string]func(ctx context.Context, r *testjob.Rank) error{
		"a rank beyond the team": func(ctx context.Context, r *testjob.Rank) error {
			_, err := fan.OpenIn[byte](ctx, r.World, []int{0, 99})
			return err
		},
		"a negative rank": func(ctx context.Context, r *testjob.Rank) error {
			_, err := fan.OpenIn[byte](ctx, r.World, []int{0, 0, -1})
			return err
		},
		"an option": func(ctx context.Context, r *testjob.Rank) error {
			_, err := fan.OpenIn[byte](ctx, r.World, []int{0}, rpipe.WithWidth(0))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 0 {
						w, err := rpipe.OpenWriter[byte](ctx, r.World, 1)
						r.NoError(err)
						r.NoError(w.Send(ctx, []byte{7}))
						r.NoError(w.Close(ctx))
						return
					}
					r.ErrorIs(open(ctx, r), runtime.ErrRange)
					f, err := fan.OpenIn[byte](ctx, r.World, []int{0})
					r.NoError(err)
					b, from, err := f.Read(ctx)
					r.NoError(err)
					r.Zero(from)
					r.Equal([]byte{7}, b.Mem())
					r.NoError(f.Free(b))
					_, _, err = f.Read(ctx)
					r.Equal(io.EOF, err)
					r.NoError(f.Close(ctx))
				})
			})
		})
	}
}
