package collectives

import (
	"context"
	"errors"
)

// await is the team's Await for what members wait for in each other's memory. Those
// that share cores look a few times only before they make way: one of those that they
// wait for may need this core (8 ranks on 2 cores, 8 bytes: an exchange on a ring takes
// 8 us instead of 14, an all-to-all 8 instead of 10).
func (g *group) await(ctx context.Context, ready func() bool) error {
	t := g.team
	if !t.Crowded {
		return t.Await(ctx, ready)
	}
	seen, bad := t.Health(), t.Err()
	err := t.Bell().WaitCalling(ctx, func() bool {
		if bad != nil || ready() || t.Progress() && ready() {
			return true
		}
		if now := t.Health(); now != seen {
			seen, bad = now, t.Err()
		}
		return bad != nil
	})
	if err == nil && bad != nil && ready() {
		return nil
	}
	return errors.Join(bad, err)
}
