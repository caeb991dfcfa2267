package pipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// Ends that differ never connect, and agree on no more than where a card lies: the
// word that says so has a place of its own in it, over a window a slot.

// Disowned implements Link.
func (l *FabricLink) Disowned() bool { return atomics.Word64(l.Local()[cardDisown:]).Load() != 0 }

// Disown comes behind additions that are pending, which tell the peer to look.
func (l *FabricLink) Disown(ctx context.Context) bool {
	return l.misfit.PostFlag(ctx, fabric.Flag{Offset: cardDisown, Value: 1}) == nil
}
