package window

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/device"
)

// On has this rank's elements lie in p, memory of a device, at its beginning. All ranks give On, each
// with a piece of its own; with nil, a rank has its elements in its heap. Their kinds may differ. Slots, locks and
// the words that wake ranks stay in the heap. The elements hold what the piece held: a piece of
// [device.Memory.Allocate] is zeroed.
//
// The window owns the piece until [Window.Free] returns nil. Allocate returns [driver.ErrKind] at all
// ranks if a provider of the job does not register the kind: the error names both. A rank that gives [device.Bounce]
// has such elements reached through its host's memory instead. It is [ErrRange] if
// the piece is too small, and [ErrLent] for [AllocateShared]. [Window.Realloc] returns ErrLent.
//
// [driver.ErrKind]: https://pkg.go.dev/github.com/gopgas/gopgas/verbs/driver#ErrKind
func On(p *device.Piece, fallback ...device.Fallback) Option {
	return func(o *options) (err error) {
		l := &lent{placed: true, bounces: slices.Contains(fallback, device.Bounce)}
		o.lent = l
		if p != nil {
			l.piece, err = p.Region()
		}
		return err
	}
}

// placeElements finds the place of this rank's elements, if On has one for them.
func (c *core) placeElements(o *options) (err error) {
	l, need := o.lent, c.layout.elems*c.layout.size
	switch {
	case l == nil || !l.placed:
		return nil
	case o.shared:
		return fmt.Errorf("%w: elements in one array lie in the heap of rank 0", ErrLent)
	case l.piece.Bytes == nil:
		if l.block, err = c.team.Arena().AllocAligned(max(need, lineSize), o.align); err != nil {
			return err
		}
		l.piece = l.block.Memory
	}
	if len(l.piece.Bytes) < need {
		return fmt.Errorf("%d bytes of elements on a piece of %d: %w", need, len(l.piece.Bytes), ErrRange)
	}
	l.mem = l.piece.Bytes[:need:need]
	l.piece.Bytes = l.piece.Bytes[:max(need, lineSize)]
	l.least = l.align()
	return nil
}

// Path says which way operations on a target's elements go.
type Path struct {
	// Mapped: they are loads and stores, of this rank's CPU.
	Mapped bool
	// Provider carries them as requests if they are not mapped: "ibv" leaves them to RDMA devices, "tcp" to
	// the target's CPU.
	Provider string
	// Bounced: they pass through memory of the target's host, whose CPU copies them, see [device.Bounce].
	Bounced bool
}

// String returns the path in words.
func (p Path) String() string {
	switch {
	case p.Mapped:
		return "mapped"
	case p.Bounced:
		return "bounced at the target, over " + p.Provider
	}
	return "requests over " + p.Provider
}

// Path says which way operations on the target go. Kind: local after the first access to the target.
func (w *Window[T]) Path(ctx context.Context, target int) (Path, error) {
	r, err := w.reach(ctx, target, 0, 0)
	if err != nil {
		return Path{}, w.failAt("Path", target, -1, 0, err)
	}
	return Path{Mapped: r.Mem != nil, Provider: r.Peer.Provider(), Bounced: r.Bounced()}, nil
}
