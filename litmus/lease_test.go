package litmus

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestLeaseKeepsDetachedMemory(t *testing.T) { everywhere(t, "lease") }

// leaseKeepsMemory: rank 0 opens memory that rank 1 attached. Rank 1 detaches it and attaches other
// memory; then rank 0 puts and closes. Forbidden: the put in the other memory.
func leaseKeepsMemory(ctx context.Context, r *testjob.Rank) {
	const n = 500
	w, err := window.Allocate[uint64](ctx, r.World, 0, window.WithAttachments(2))
	r.NoError(err)
	heads, turns := allocate[window.Pointer[uint64]](ctx, r, 1), allocate[uint64](ctx, r, 1)
	mark := make([]uint64, n)
	for round := 1; round <= rounds(5); round++ {
		if r.Me == 0 {
			hear(ctx, r, turns, 0, round)
			a, err := w.Open(ctx, heads.Local()[0])
			r.NoError(err)
			tell(ctx, r, turns, 1, 0, round)
			hear(ctx, r, turns, 1, round)
			for i := range mark {
				mark[i] = uint64(round)
			}
			r.NoError(a.Put(ctx, 1, 0, mark))
			r.NoError(a.Close(ctx))
			tell(ctx, r, turns, 1, 1, round)
			continue
		}
		p, old, err := w.Attach(ctx, n)
		r.NoError(err)
		r.NoError(heads.PutValue(ctx, 0, 0, p))
		tell(ctx, r, turns, 0, 0, round)
		hear(ctx, r, turns, 0, round)
		r.NoError(w.Detach(ctx, p))
		q, fresh, err := w.Attach(ctx, n)
		r.NoError(err)
		tell(ctx, r, turns, 0, 1, round)
		hear(ctx, r, turns, 1, round)
		for i, v := range fresh {
			if v != 0 || old[i] != uint64(round) {
				r.FailNow("a put in memory that was attached later", "round %d, element %d is %d, and %d in the detached memory", round, i, v, old[i])
			}
		}
		r.NoError(w.Detach(ctx, q))
	}
	r.NoError(turns.Fence(ctx))
}

func TestStalePointersLeadNowhere(t *testing.T) { everywhere(t, "stale pointers") }

// stalePointers: rank 1 attaches memory in the place of memory that it has detached; then all ranks
// replace one window by another. Forbidden: that the pointer to the first leads to the second.
func stalePointers(ctx context.Context, r *testjob.Rank) {
	w, err := window.Allocate[uint64](ctx, r.World, 0, window.WithAttachments(1))
	r.NoError(err)
	heads := allocate[window.Pointer[uint64]](ctx, r, 1)
	if r.Me == 1 {
		stale, _, err := w.Attach(ctx, 10)
		r.NoError(err)
		r.NoError(w.Detach(ctx, stale))
		_, _, err = w.Attach(ctx, 10)
		r.NoError(err)
		r.NoError(heads.PutValue(ctx, 0, 0, stale))
	}
	r.NoError(heads.Fence(ctx))
	if r.Me == 0 {
		_, err = w.Open(ctx, heads.Local()[0])
		r.ErrorIs(err, window.ErrPointer, "the pointer to detached memory")
	}
	first := allocate[uint64](ctx, r, 10)
	stale, err := first.Pointer(1, 3)
	r.NoError(err)
	r.NoError(first.Free(ctx))
	second := allocate[uint64](ctx, r, 10)
	_, _, err = second.Locate(stale)
	r.ErrorIs(err, window.ErrPointer, "the pointer into a window that was freed")
	r.NoError(second.Fence(ctx))
}
