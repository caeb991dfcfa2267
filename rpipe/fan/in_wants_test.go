package fan_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// TestFanInServesWaitingWriterAsItReads has a writer wait for memory that the reader has freed
// and not announced. Reading the next block announces it: no announcer runs, and the reader
// makes no other call.
func TestFanInServesWaitingWriterAsItReads(t *testing.T) {
	pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		opts := []rpipe.Option{rpipe.WithHeap(1024), pipetest.WithoutAnnouncer()}
		f, err := fan.OpenIn[byte](ctx, r.World, []int{0}, opts...)
		r.NoError(err)
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		read := func(value byte) rpipe.Block[byte] {
			b, _, err := f.TryRead()
			r.NoError(err)
			r.Equal(pipetest.SixtyFour(value), b.Mem())
			return b
		}
		for value := range byte(1024 / 64) {
			r.NoError(w.Send(ctx, pipetest.SixtyFour(value)))
		}
		r.NoError(f.Free(read(0)))
		r.Zero(f.Stats().Announcements)
		waited := make(chan error, 1)
		go func() { waited <- w.Send(ctx, pipetest.SixtyFour(16)) }()
		for wanted(f.Ends()[0]).Load() == 0 {
			r.NoError(context.Cause(ctx))
		}
		b := read(1)
		r.EqualValues(1, f.Stats().Announcements)
		r.NoError(<-waited)
		r.NoError(f.Free(b))
		for value := byte(2); value <= 16; value++ {
			r.NoError(f.Free(read(value)))
		}
		pipetest.CloseMany(ctx, r, f, []*rpipe.Writer[byte]{w})
	})
}
