package pipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
)

// These are the calls of a fan-in, which reads from many pipes by Poll.

// Called reports whether the writer has put something here, or has found that the ends differ.
func (r *Reader) Called() bool { return r.HasArrived() || !r.Joined.Load() && r.disowned() }

// Holds reports whether this end has taken a block, or the end, from the ring and not handed it
// out. No notification follows then.
func (r *Reader) Holds() bool { return r.have || r.eof || r.fetches.aheadOfRead() > 0 }

// AwaitsRoom reports whether the next block waits for memory of this end.
func (r *Reader) AwaitsRoom() bool { return r.have && !r.fetches.hasRoom() }

// Prefetch has the core load the next notification soon.
func (r *Reader) Prefetch() {
	if r.quick != nil {
		atomics.Prefetch(atomics.Bytes(r.Words[r.place():]))
	}
}

// Look looks for the writer, unless this end is closed or connected. It reports as deserted whether
// the writer was closed before, so that the end comes next. ErrWouldBlock: the writer's rank does
// not respond.
func (r *Reader) Look(ctx context.Context) (deserted bool, err error) {
	r.calling.Lock()
	defer r.called()
	if r.Closed.Load() || r.Joined.Load() {
		return false, nil // the registry alone connects a closed end
	}
	ctx, cancel := r.briefly(ctx)
	defer cancel()
	err = r.connect(ctx, false)
	return r.Deserted, err
}
