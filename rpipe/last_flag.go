package rpipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A lastFlag is a flag that an end puts once, as it closes. It reaches the peer although
// the call that puts it gives up.
type lastFlag struct {
	fabric.Composer
	sent atomic.Bool
}

// post has put set the flag, and waits for room until ctx ends. If post returns the cause
// of that, the flag leaves later. Further calls wait for the first one's put.
func (l *lastFlag) post(ctx context.Context, to *fabric.Peer, put func(ctx context.Context) error) error {
	if l.sent.Load() {
		return nil
	}
	if l.Compose == nil {
		l.Compose = func(ctx context.Context) error {
			err := put(ctx)
			l.sent.Store(err == nil)
			return err
		}
	}
	return to.Post(ctx, &l.Composer)
}
