package pipe

import (
	"context"
)

// A waiter is one goroutine's wait for flags of an end.
type waiter struct {
	p     *End
	ready func() bool // ends the wait when true
	look  func() bool // lookOnce, made once
	seen  uint64      // health when the peer was last seen to be well, or gone
	gone  error
}

// init makes it a wait of an end, whose peer it has not seen.
func (v *waiter) init(p *End) { v.p, v.look, v.seen = p, v.lookOnce, p.team.Health()-1 }

// Await returns nil once ready is true, or else the peer's fate, or the cause of ctx's end.
// It calls ready often. ready looks at flags, and at state whose changes Ring announces.
// Calls come one at a time.
func (p *End) Await(ctx context.Context, ready func() bool) error { return p.wait.await(ctx, ready) }

// await waits until ready, and returns an error when ctx ends or the peer is gone. Flags that arrived
// before the peer went still count.
func (v *waiter) await(ctx context.Context, ready func() bool) error {
	v.ready = ready
	if v.gone != nil {
		v.seen, v.gone = v.p.team.Health()-1, nil
	}
	err := v.p.team.WaitStored(ctx, v.look)
	v.ready = nil
	if err == nil && v.gone != nil {
		v.p.Progress() // puts that have arrived count
		if !ready() {
			return v.gone
		}
	}
	return err
}

// lookOnce reports whether the wait is over.
func (v *waiter) lookOnce() bool {
	if v.ready() {
		return true
	}
	if now := v.p.team.Health(); now != v.seen {
		v.seen, v.gone = now, v.p.Presence()
	}
	if v.gone == nil {
		v.gone = v.p.Layer.Err()
	}
	// A peer that refuses may be a rank that is well, which is no news of health.
	if far := v.p.far.Load(); far != nil && v.gone == nil {
		v.gone = far.Queue.Err()
	}
	return v.gone != nil
}
