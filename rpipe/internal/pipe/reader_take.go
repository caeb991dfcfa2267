package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// These are the calls of a fan-in, which reads from many pipes.

// Taken is the result of one Take.
type Taken struct {
	Addr    rmalloc.Addr
	Mem     []byte
	OK      bool   // there is a block
	Blocked bool   // the next block, or the end, is taken from the ring and not handed out
	Count   uint64 // notifications that were taken from the ring, up to that of this block
	Wants   uint64 // how often the writer has waited so far
}

// Take returns the next block, if there is one and room for it. It does not wait for a Free,
// nor for a rank that does not answer. gone: the writer is. Then Take looks once more, since a
// block that has arrived by then counts.
func (r *Reader) Take(ctx context.Context, gone bool) (t Taken, err error) {
	before := r.opened()
	if t.Addr, t.Mem, t.OK = r.readQuietly(); t.OK {
		t.Count, t.Wants = 1, r.wants()
		r.Serve()
		return t, nil
	}
	r.calling.Lock()
	defer r.called()
	ctx, cancel := r.briefly(ctx)
	defer cancel()
	if t.Addr, t.Mem, t.OK, err = r.tryRead(ctx, false); !t.OK && err == nil && gone {
		r.Progress()
		t.Addr, t.Mem, t.OK, err = r.tryRead(ctx, false)
	}
	if errors.Is(err, ErrWouldBlock) {
		err = nil
	}
	t.Count, t.Blocked = r.opened()-before, !t.OK && (r.have || r.eof)
	t.Wants = r.wants()
	r.Serve()
	return t, err
}

// opened returns how many notifications were taken from the ring, less those of blocks ahead
// of Read.
func (r *Reader) opened() uint64 { return r.taker.Count() - uint64(r.fetches.aheadOfRead()) }

// wants returns how often the writer has waited so far.
func (r *Reader) wants() uint64 { return r.Flag(r.WantedFlag()) >> WantsBits }

// Prefetch asks the core to load the next notification soon.
func (r *Reader) Prefetch() {
	if r.quick != nil {
		atomics.Prefetch(atomics.Bytes(r.Words[r.place():]))
	}
}

// Look looks for the writer, unless this end is closed or connected. It reports as deserted whether
// the writer was closed before, so that the end comes next. ErrWouldBlock: the writer's rank does
// not answer.
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

// HasRoom reports whether a read would not wait for memory of this end.
func (r *Reader) HasRoom() bool { return r.fetches.hasRoom() }

// AtEnd reports whether no notification follows.
func (r *Reader) AtEnd() bool { return r.eof }
