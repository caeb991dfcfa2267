package fabric

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// verify reads a word of the peer and waits for it. Queue pairs of some providers are
// connected without a packet: only a response shows that a network joins their ends. The
// peer is not in use yet, so a failure says nothing about its rank.
func (p *Peer) verify(ctx context.Context) error {
	o, err := p.head.newOp(ctx)
	if err != nil {
		return err
	}
	o.wr[0] = driver.WorkRequest{Op: driver.OpRead, Remote: p.head.addr.Add(headFlush)}
	o.result(0, 8)
	if err := p.postFirst(ctx, o); err != nil {
		o.bind.ops.give(o)
		return err
	}
	seen, gone := p.f.Health()-1, error(nil)
	err = p.f.Wait(ctx, func() bool {
		if now := p.f.Health(); now != seen {
			seen, gone = now, p.f.health.of(p.rank)
		}
		return gone != nil || o.over()
	})
	if err = errors.Join(err, gone); err != nil {
		p.cut() // completes o: the caller closes the queue pair, and that completes no request
		_ = p.f.Wait(context.Background(), o.over)
		o.bind.ops.give(o)
		return err
	}
	over, status, cause := o.phase.Load() == done, o.status, o.err
	o.bind.ops.give(o)
	switch {
	case !over:
		return ErrClosed
	case status != driver.Success:
		return fmt.Errorf("no response: %s", detail(status, cause))
	}
	return nil
}

// postFirst posts o's first request on a queue pair that has no others under way. A failure
// is not the peer's error.
func (p *Peer) postFirst(ctx context.Context, o *op) error {
	for {
		before := p.bind.completed.Load()
		posted, err := p.tryPost(o, 0, 1)
		switch {
		case posted == 1:
			return nil
		case !errors.Is(err, driver.ErrQueueFull):
			return err
		}
		if err := p.f.awaitRoom(ctx, p, before); err != nil { // of the completion queue
			return err
		}
	}
}
