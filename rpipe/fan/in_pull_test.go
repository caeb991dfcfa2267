package fan_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

func TestFanInReadsPastBlockedPullPipe(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []rpipe.Option{rpipe.WithWindow(over)}
			if r.Me == 0 {
				writeFullAndOther(ctx, r, append(opts, pipetest.TwoFit...))
			} else {
				readPastFull(ctx, r, c.Mapped(), append(opts, pipetest.TwoFit...))
			}
		})
	})
}

// writeFullAndOther writes four blocks to pipe 0, which are more than fit, and one
// to pipe 1 once that has no room.
func writeFullAndOther(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	full, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
	r.NoError(err)
	other, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
	r.NoError(err)
	done := make(chan error, 1)
	go func() {
		for i := range 4 {
			if err := full.Send(ctx, pipetest.SixtyFour(byte(i))); err != nil {
				done <- err
				return
			}
		}
		done <- full.Close(ctx)
	}()
	r.NoError(r.World.Barrier(ctx)) // full
	r.NoError(other.Send(ctx, pipetest.SixtyFour(100)))
	r.NoError(other.Close(ctx))
	r.NoError(<-done)
}

func readPastFull(ctx context.Context, r *testjob.Rank, mapped bool, opts []rpipe.Option) {
	f, err := fan.OpenIn[byte](ctx, r.World, []int{0, 0}, opts...)
	r.NoError(err)
	read := func(from int, value byte) rpipe.Block[byte] {
		b, at, err := f.Read(ctx)
		r.NoError(err)
		r.Equal(from, at)
		r.Equal(pipetest.SixtyFour(value), b.Mem())
		return b
	}
	held := []rpipe.Block[byte]{read(0, 0), read(0, 1)}
	for !mapped && f.Blocked() == 0 { // where blocks are used in place, the writer waits instead
		_, _, err := f.TryRead()
		r.ErrorIs(err, rpipe.ErrWouldBlock, "there is no room")
		r.NoError(ctx.Err())
	}
	r.NoError(r.World.Barrier(ctx))
	held = append(held, read(1, 100))

	freed := make(chan error, 1)
	go func() { freed <- f.Free(held[0]) }() // Read may wait already
	held = append(held, read(0, 2))
	r.NoError(<-freed)
	r.NoError(f.Free(held[1]))
	held = append(held, read(0, 3))
	_, _, err = f.Read(ctx)
	r.Equal(io.EOF, err)
	for _, b := range held[2:] {
		r.NoError(f.Free(b))
	}
	r.Zero(f.Blocked())
	r.NoError(f.Close(ctx))
}

func TestFanInReadErrorNamesFree(t *testing.T) {
	pipetest.Queued.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f, err := fan.OpenIn[byte](ctx, r.World, []int{0}, pipetest.TwoFit...)
		r.NoError(err)
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, pipetest.TwoFit...)
		r.NoError(err)
		for i := range 2 {
			r.NoError(w.Send(ctx, pipetest.SixtyFour(byte(i))))
			_, _, err := f.Read(ctx)
			r.NoError(err)
		}
		r.NoError(w.Send(ctx, pipetest.SixtyFour(2)))
		for f.Blocked() == 0 {
			_, _, err := f.TryRead()
			r.ErrorIs(err, rpipe.ErrWouldBlock)
			r.NoError(ctx.Err())
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, from, err := f.Read(ended)
		r.ErrorIs(err, context.Canceled)
		r.ErrorContains(err, "Free")
		r.Equal(-1, from)
		r.NoError(f.Close(ctx))
		_ = w.Close(ctx)
	})
}
