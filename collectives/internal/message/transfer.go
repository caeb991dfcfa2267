package message

import "context"

// none stands for a missing member, beyond the end of a line.
const none = -1

// exchange is c.Exchange in which either member may be none.
func exchange(ctx context.Context, c Transport, to int, src []byte, from int, dst []byte) error {
	switch {
	case to == none && from == none:
		return nil
	case from == none:
		return c.Send(ctx, to, src)
	case to == none:
		return c.Recv(ctx, from, dst)
	default:
		return c.Exchange(ctx, to, src, from, dst)
	}
}

// exchangeFold is c.ExchangeFold in which either member may be none.
func exchangeFold(ctx context.Context, c Transport, to int, src []byte, from int, f Folding) error {
	switch {
	case to == none && from == none:
		return nil
	case from == none:
		return c.SendFold(ctx, to, src)
	case to == none:
		return c.Fold(ctx, from, f)
	default:
		return c.ExchangeFold(ctx, to, src, from, f)
	}
}

// inLine returns member i of a line of n, or none.
func inLine(i, n int) int {
	if i < 0 || i >= n {
		return none
	}
	return i
}
