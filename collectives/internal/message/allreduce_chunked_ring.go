package message

import "context"

// AllReduceChunkedRing: AllReduceRing of chunks of n segments, one after another.
// A member sends a combined segment in the next step, while the caches still have
// it. A member that is done with a chunk begins the next one without waiting for
// the rest.
//
//	chunk 0 |reduce|all-gather|
//	chunk 1                   |reduce|all-gather|
//
// Cost: with k chunks, 2k(n-1) rounds, 2m(n-1)/n bytes. Needs an operator that
// commutes.
//
// (Open MPI's segmented ring does likewise for its reduce-scatter half.)
func AllReduceChunkedRing(ctx context.Context, c Transport, a *Args) error {
	chunk := c.Size() * a.segment()
	for lo := 0; lo < len(a.Send); lo += chunk {
		hi := min(lo+chunk, len(a.Send))
		if err := allReduceRing(ctx, c, a, a.Send[lo:hi], a.Recv[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}
