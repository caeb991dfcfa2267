package active

import (
	"context"

	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// put sends a frame to a rank. It waits for room there. The frame leaves now, with those of
// goroutines that send at the same time, or else with a full block or by the clock.
func put(ctx context.Context, s *batch.Batches[byte], to int, f *frame, now bool) error {
	b := &s.To[to]
	if err := b.Enter(ctx); err != nil {
		return err
	}
	defer b.Leave()
	room, err := b.Space(ctx, frameSize(len(f.payload)))
	if err != nil {
		return err
	}
	f.encode(room)
	if b.Commit(len(room)) || now && (!b.Contended() || !s.Clock.Runs()) {
		return b.Send(ctx, batch.ByHand)
	}
	s.Clock.Arm()
	return nil
}
