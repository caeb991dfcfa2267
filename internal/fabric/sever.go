package fabric

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// severRequest has a rank end all connections from a dead rank.
type severRequest struct{ Dead int }

// Sever returns once p applies no request of a dead rank any more. Requests that this rank posted may
// still lie in p's connections when its death is known. It waits until p knows of the death, too.
func (p *Peer) Sever(ctx context.Context, dead int) error {
	ctx = wait.Context(ctx)
	if p.rank == p.f.cfg.Rank {
		return p.f.sever(ctx, dead)
	}
	return p.f.call(ctx, p.rank, "sever", severRequest{dead}, &struct{}{})
}

// sever is Sever at the rank whose connections end.
func (f *Fabric) sever(ctx context.Context, dead int) error {
	if s := f.sites.Load(); dead < 0 || s != nil && dead >= len(s.host) { // it could never be dead
		return fmt.Errorf("rank %d: %w: the job has no such rank", dead, driver.ErrInvalid)
	}
	if err := f.Wait(ctx, func() bool { return f.health.of(dead) != nil }); err != nil {
		return err
	}
	var ends []inboundKey
	f.peersMu.Lock()
	for end := range f.inbound {
		if end.from == dead {
			ends = append(ends, end)
		}
	}
	f.peersMu.Unlock()
	for _, end := range ends {
		f.admit(end, nil)
	}
	return nil
}
