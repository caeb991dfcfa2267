package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// Ends that differ never connect, and agree on no more than where a card lies: the
// word that says so has a place of its own in it, over a window a slot.

func (l *fabricLink) disowned() bool { return atomics.Word64(l.local()[cardDisown:]).Load() != 0 }

// disown comes behind additions that are pending, which tell the peer to look.
func (l *fabricLink) disown(ctx context.Context) bool {
	return l.misfit.PostFlag(ctx, fabric.Flag{Offset: cardDisown, Value: 1}) == nil
}
