package chaos

import (
	"context"
	"errors"
	"sync"

	"github.com/gopgas/gopgas/rpipe"
)

// startRing starts a stream from each rank to its right neighbor, amid deaths. The
// function returned waits for its ends: a pipe between two survivors is complete.
func (p *player) startRing(ctx context.Context) (end func(context.Context)) {
	w, err := rpipe.OpenWriter[byte](ctx, p.World, p.Right(), rpipe.WithName("ring"))
	p.NoError(err)
	r, err := rpipe.OpenReader[byte](ctx, p.World, p.Left(), rpipe.WithName("ring"))
	p.NoError(err)
	var sent, received []int64
	var sendErr, readErr error
	var ends sync.WaitGroup
	sendRng, readRng := p.rng(7000+p.Me), p.rng(8000+p.Me)
	ends.Go(func() { sent, sendErr = p.send(ctx, sendRng, w, 200, longest) })
	ends.Go(func() { received, readErr = p.receive(ctx, readRng, r) })
	return func(ctx context.Context) {
		ends.Wait()
		p.checkPeerError(sendErr, p.Right())
		p.checkPeerError(errors.Join(readErr, r.Close(ctx)), p.Left())
		for _, m := range swap(ctx, p, mail{p.Me, sent}) {
			if m.Rank == p.Left() {
				p.holds(received, m.Sent, m.Rank)
			}
		}
	}
}

// A mail holds the numbers of the messages that a rank sent to the right.
type mail struct {
	Rank int
	Sent []int64
}

// checkPeerError checks that err is the death of the pipe's peer, or nil.
func (p *player) checkPeerError(err error, other int) {
	if p.victims[other] && p.isVictimDeath(err) {
		return
	}
	p.NoError(err, "%v: rank %d: a pipe with rank %d", p.trial, p.Me, other)
}
