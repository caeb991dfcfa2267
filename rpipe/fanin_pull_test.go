package rpipe_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
)

// twoFit are pull pipes whose readers hold two blocks of 64 bytes where they fetch.
var twoFit = []rpipe.Option{rpipe.WithPull(), rpipe.WithHeap(128), rpipe.WithWidth(4)}

func TestAPullPipeWithoutRoomKeepsNoOtherWaiting(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		overAll(t, c, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			if r.Me == 0 {
				writeFullAndOther(ctx, r, append(opts, twoFit...))
			} else {
				readPastFull(ctx, r, c.Mapped(), append(opts, twoFit...))
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
			if err := full.Send(ctx, sixtyFour(byte(i))); err != nil {
				done <- err
				return
			}
		}
		done <- full.Close(ctx)
	}()
	r.NoError(r.World.Barrier(ctx)) // full
	r.NoError(other.Send(ctx, sixtyFour(100)))
	r.NoError(other.Close(ctx))
	r.NoError(<-done)
}

func sixtyFour(value byte) []byte {
	b := make([]byte, 64)
	for i := range b {
		b[i] = value
	}
	return b
}

func readPastFull(ctx context.Context, r *testjob.Rank, mapped bool, opts []rpipe.Option) {
	f, err := rpipe.OpenFanIn[byte](ctx, r.World, []int{0, 0}, opts...)
	r.NoError(err)
	read := func(from int, value byte) rpipe.Block[byte] {
		b, at, err := f.Read(ctx)
		r.NoError(err)
		r.Equal(from, at)
		r.Equal(sixtyFour(value), b.Mem())
		return b
	}
	held := []rpipe.Block[byte]{read(0, 0), read(0, 1)}
	for !mapped && f.Full() == 0 { // where blocks are used in place, the writer waits instead
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
	r.Zero(f.Full())
	r.NoError(f.Close(ctx))
}

func TestAReadThatEndsBesideAFullPipeSaysWhatWouldGiveRoom(t *testing.T) {
	queued.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f, err := rpipe.OpenFanIn[byte](ctx, r.World, []int{0}, twoFit...)
		r.NoError(err)
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, twoFit...)
		r.NoError(err)
		for i := range 2 {
			r.NoError(w.Send(ctx, sixtyFour(byte(i))))
			_, _, err := f.Read(ctx)
			r.NoError(err)
		}
		r.NoError(w.Send(ctx, sixtyFour(2)))
		for f.Full() == 0 {
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
