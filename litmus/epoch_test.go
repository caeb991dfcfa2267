package litmus

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestEpochs(t *testing.T) { everywhere(t, "epochs") }

// epochsInTurn: ranks 0 and 1 put and add at rank 2 between Start and Complete; rank 2 reads
// between Wait and Post. Forbidden: values of the round before, and of the next one.
func epochsInTurn(ctx context.Context, r *testjob.Rank) {
	const n = 300
	w := allocate[uint64](ctx, r, 2*n+1)
	buf := make([]uint64, n)
	for round := 1; round <= rounds(100); round++ {
		if r.Me < 2 {
			for i := range buf {
				buf[i] = uint64(round)
			}
			access, err := w.Start(ctx, []int{2})
			r.NoError(err)
			r.NoError(w.Put(ctx, 2, r.Me*n, buf))
			r.NoError(window.AtomicAdd(ctx, w, 2, 2*n, 1))
			r.NoError(access.Complete(ctx))
			continue
		}
		exposure, err := w.Post(ctx, []int{1, 0})
		r.NoError(err)
		r.NoError(exposure.Wait(ctx))
		for i, v := range w.Local()[:2*n] {
			if v != uint64(round) {
				r.FailNow("an epoch leaked", "round %d, element %d is of round %d", round, i, v)
			}
		}
		r.EqualValues(2*round, w.Local()[2*n])
	}
	r.NoError(w.Fence(ctx))
}
