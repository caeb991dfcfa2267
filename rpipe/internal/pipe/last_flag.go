package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A LastFlag is a flag that an end puts once, as it closes. No call waits for room for it.
// It leaves behind all that the end has put, although the end may be gone by then.
type LastFlag struct{ fabric.Composer }

// Post has put set the flag, now or as soon as there is room, and returns what became of
// the peer. Further calls do nothing.
func (l *LastFlag) Post(to *fabric.Peer, put func(ctx context.Context) error) error {
	if l.Posted() {
		return nil
	}
	l.Compose = put
	if err := to.Post(to.NoWait(), &l.Composer); !errors.Is(err, fabric.ErrNoRoom) {
		return err
	}
	return nil
}

// Posted reports whether the flag arrives, or the peer is gone.
func (l *LastFlag) Posted() bool { return l.Compose != nil }
