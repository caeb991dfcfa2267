package message

import "context"

// AllReduceReduceBroadcast: ReduceBinomial to member 0, then
// BroadcastBinomial from it.
//
// Cost: 2L rounds, 2L m bytes.
func AllReduceReduceBroadcast(ctx context.Context, c Transport, a *Args) error {
	if err := reduceBinomial(ctx, c, a, 0, a.Recv); err != nil {
		return err
	}
	return broadcastBinomial(ctx, c, 0, a.Recv)
}
