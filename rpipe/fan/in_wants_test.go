package fan_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
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

// TestFanInStaysExactWhereWaitsAndBlocksMeet has a turn find waits of writers and no block. A
// block arrives behind the turn's look at its pipe, and ahead of the turn's load of the word.
// The word is exact all the same: later reads look at no idle pipe.
func TestFanInStaysExactWhereWaitsAndBlocksMeet(t *testing.T) {
	pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f, writers := pipetest.FanOfMany(ctx, r, pipe.GroupSize)
		read := func(from int) {
			b, at, err := f.Read(ctx)
			r.NoError(err)
			r.Equal(from, at)
			r.NoError(f.Free(b))
		}
		send := func(i int) { r.NoError(writers[i].Send(ctx, []int32{1})) }
		for i := range writers {
			send(i)
			read(i)
		}
		// The writer of pipe 9 waits, and the word says so. The writer of pipe 8, at which the
		// turn looks next, waits too: the word does not say so yet.
		const counted, uncounted = 9, 8
		wait := func(i int) { wanted(f.Ends()[i]).Add(1 << pipe.WantsBits) }
		count := func(i int) {
			pipetest.ScribbleSummary(f.Summary(), 0, func(word uint64) uint64 { return word + 1<<pipe.Field(i) })
		}
		wait(counted)
		count(counted)
		wait(uncounted)
		loads := 0
		done := pipetest.OnWord(f.Summary(), func() {
			if loads++; loads == 2 { // the first load began the turn
				send(counted)
			}
		})
		read(counted)
		done()
		count(uncounted)
		before := f.Stats().Looks
		const blocks = 2 * pipe.GroupSize
		for range blocks {
			send(7)
			read(7)
		}
		r.LessOrEqual(f.Stats().Looks-before, uint64(blocks*4), "two turns look at all pipes")
		pipetest.CloseMany(ctx, r, f, writers)
	})
}
