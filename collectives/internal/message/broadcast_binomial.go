package message

import "context"

// BroadcastBinomial: in each round every member that has the data sends it to one
// more, down the tree of tree.go.
//
//	round 1   0 --> 4
//	round 2   0 --> 2, 4 --> 6
//	round 3   0 --> 1, 2 --> 3, 4 --> 5, 6 --> 7
//
// Cost: L rounds, L m bytes.
//
// (Johnsson and Ho, "Optimum Broadcasting and Personalized Communication in
// Hypercubes", 1989.)
func BroadcastBinomial(ctx context.Context, c Transport, a *Args) error {
	return broadcastBinomial(ctx, c, a.Root, a.Recv)
}

// broadcastBinomial sends data down the tree of tree.go. Other algorithms end by it.
func broadcastBinomial(ctx context.Context, c Transport, root int, data []byte) error {
	n := c.Size()
	v := turned(c.Rank(), root, n)
	low := lowest(v, n)
	if v != 0 {
		if err := c.Recv(ctx, rankOf(v-low, root, n), data); err != nil {
			return err
		}
	}
	for mask := low >> 1; mask > 0; mask >>= 1 {
		if v+mask >= n {
			continue
		}
		if err := c.Send(ctx, rankOf(v+mask, root, n), data); err != nil {
			return err
		}
	}
	return nil
}
