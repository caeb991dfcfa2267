package channel

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
)

// TestPieceCostsOneWriteMoreThanItsSlot counts the WRITEs of a message to this rank itself.
// On this device the number of a slot is a WRITE of its own.
func TestPieceCostsOneWriteMoreThanItsSlot(t *testing.T) {
	const ring = 64 << 10
	for bytes, writes := range map[int]uint64{0: 2, MostInSlot: 2, MostInSlot + 1: 3, MostPiece(ring): 3,
		MostPiece(ring) + 1: 3 + 2, 2 * MostPiece(ring): 3 + 3} {
		var traced *trace.Provider
		testjob.Config{Provider: "loop", Queued: true, Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			e := endOf(ctx, r, 0, ring)
			for range 2 { // the first time is first contact
				out, src := message(e, 1, bytes, false)
				in, dst := out, make([]byte, bytes)
				e.in.told, e.in.before = e.in.taken, e.in.freed // the peer knows
				traced.Reset()
				r.NoError(exchange(ctx, e, &out, src, &in, dst))
				r.Equal(src, dst)
			}
			credits := uint64(bytes / MostPiece(ring))
			r.Equal(writes+credits, traced.Snapshot().Total.Posted[driver.OpWrite], "%d bytes", bytes)
		}, runtime.WithWrap(func(p driver.Provider) driver.Provider {
			traced = trace.New(p)
			return traced
		}))
	}
}

// TestMessagesAllocateNothing sends messages of all kinds to this rank itself.
func TestMessagesAllocateNothing(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, bytes := range []int{0, MostInSlot, MostPiece(64 << 10), 64<<10 + 1} {
		testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			e := endOf(ctx, r, 0, 64<<10)
			_, mem := message(e, 0, bytes, false)
			dst := make([]byte, bytes)
			var out, in Message
			r.Zero(r.Allocs(100, func() {
				out = Message{Key: key, Bytes: bytes, Piece: MostPiece(e.Ring)}
				in = out
				if err := exchange(ctx, e, &out, mem, &in, dst); err != nil {
					r.NoError(err)
				}
			}))
		})
	}
}
