package fan_test

import (
	"context"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
)

// The memory of a block is the writer's again once all readers have read it. That holds also
// behind a block that Free has kept from one reader.
func TestFanOutKeepsUnreadBlocksBehindFreedBlock(t *testing.T) {
	testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		opts := []rpipe.Option{rpipe.WithWidth(2), rpipe.WithHeap(1024)}
		step := func() { r.NoError(r.World.Barrier(ctx)) }
		if r.Me > 0 {
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
			r.NoError(err)
			read := func(want ...byte) {
				for _, x := range want {
					got := []byte{0}
					_, err := rd.Recv(ctx, got)
					r.NoError(err)
					r.Equal(x, got[0])
				}
				r.NoError(rd.Sync(ctx))
			}
			if r.Me == 1 {
				read(1, 2, 3)
			}
			step()
			if r.Me == 2 {
				read(1)
			}
			step()
			step() // both have block 4
			read(map[int][]byte{1: {4}, 2: {2, 4}}[r.Me]...)
			step()
			_, err = rd.Read(ctx)
			r.Error(err)
			r.NoError(rd.Close(ctx))
			return
		}
		f, err := fan.OpenOut[byte](ctx, r.World, []int{1, 2}, opts...)
		r.NoError(err)
		unread := func() int { // blocks that the stage keeps
			b, err := f.Alloc(ctx, 1) // takes in the counts of blocks read
			r.NoError(err)
			r.NoError(f.Free(b))
			filled, _ := f.Stats()
			return filled.Blocks
		}
		r.NoError(f.Send(ctx, []byte{1}))
		r.NoError(f.Send(ctx, []byte{2}))
		b, err := f.Alloc(ctx, 1)
		r.NoError(err)
		b.Mem()[0] = 3
		for written := uint64(0); written < 3; { // reader 1 has it, and reader 2 has no room
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			r.ErrorIs(f.Write(short, b), context.DeadlineExceeded)
			cancel()
			r.NoError(ctx.Err())
			_, readers := f.Stats()
			written = readers[0].Written
		}
		r.NoError(f.Free(b))
		step() // reader 1 has read all
		r.GreaterOrEqual(unread(), 2, "reader 2 has not read blocks 1 and 2")
		step() // reader 2 has read block 1
		r.NoError(f.Send(ctx, []byte{4}))
		r.Equal(3, unread(), "reader 2 has not read blocks 2 and 4; block 3 lies between them")
		step()
		step() // both have read all
		r.Eventually(func() bool { return unread() == 0 }, testwatch.Patience(), time.Millisecond)
		r.NoError(f.Close(ctx))
	})
}
