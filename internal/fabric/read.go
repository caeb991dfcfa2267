package fabric

import (
	"context"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Read fetches len(dst) bytes from offset. It has filled dst if it returns nil. In any case
// dst is the caller's again when Read returns.
func (r *Remote) Read(ctx context.Context, offset int, dst []byte) error {
	if r.bounce != nil {
		return r.readBounced(ctx, offset, dst)
	}
	if over := r.Peer.stripesFor(wait.Context(ctx), len(dst)); over != nil {
		return r.readStriped(ctx, offset, dst, over)
	}
	for most := r.MaxMessage(); ; {
		n := min(len(dst), most)
		req, err := r.StartRead(ctx, offset, dst[:n])
		if err == nil {
			err = req.Wait(ctx)
		}
		if mutant.StaleRead && err == nil {
			mutant.Stale(stalePlace{r, offset}, dst[:n])
		}
		if offset, dst = offset+n, dst[n:]; err != nil || len(dst) == 0 {
			return err
		}
	}
}

// A stalePlace names memory for a mutant of Read.
type stalePlace struct {
	r      *Remote
	offset int
}

// StartRead starts a read of at most MaxMessage bytes. It does not wait: dst belongs to the
// operation until Request.Wait. A read that bounces has ended when StartRead returns.
func (r *Remote) StartRead(ctx context.Context, offset int, dst []byte) (Request, error) {
	if r.bounce != nil {
		return Request{}, r.readBounced(ctx, offset, dst)
	}
	o, err := r.newOp(ctx)
	if err != nil {
		return Request{}, err
	}
	if err := o.lend(0, dst, true, false); err != nil {
		o.unfit = err
	}
	o.wr[0] = driver.WorkRequest{ID: o.id, Op: driver.OpRead, Flags: driver.Signaled, Local: o.seg[:1],
		Remote: r.addr.Add(uint64(offset))}
	if r.whole == nil { // the transfer counted its pieces
		r.Peer.Stats.count(len(dst))
	}
	return o.start(ctx, 1)
}

// ReadWord fetches the word of 8 bytes at offset, a multiple of 8, by an atomic that adds
// 0. Some devices do that sooner than a READ. It is the device's own atomic: no other rank
// and no other goroutine may access the word meanwhile.
func (r *Remote) ReadWord(ctx context.Context, offset int) (uint64, error) {
	o, err := r.newOp(ctx)
	if err != nil {
		return 0, err
	}
	o.wr[0] = driver.WorkRequest{Op: driver.OpFetchAdd, Remote: r.addr.Add(uint64(offset))}
	r.Peer.Stats.count(8)
	return o.fetch(ctx)
}
