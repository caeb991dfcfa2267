package fabric

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Read fetches len(dst) bytes from offset. dst is filled when it returns nil
// and nobody's but the caller's when it returns at all.
func (r *Remote) Read(ctx context.Context, offset int, dst []byte) error {
	for most := r.MaxMessage(); ; {
		n := min(len(dst), most)
		req, err := r.StartRead(ctx, offset, dst[:n])
		if err == nil {
			err = req.Wait(ctx)
		}
		if offset, dst = offset+n, dst[n:]; err != nil || len(dst) == 0 {
			return err
		}
	}
}

// StartRead is Read of at most MaxMessage bytes, without the wait: dst belongs
// to the operation until Wait.
func (r *Remote) StartRead(ctx context.Context, offset int, dst []byte) (Request, error) {
	p := r.Peer
	o := p.bind.ops.take(r)
	if err := o.lend(0, dst, true, false); err != nil {
		o.unfit = err
	}
	o.wr[0] = driver.WorkRequest{ID: o.id, Op: driver.OpRead, Flags: driver.Signaled, Local: o.seg[:1],
		Remote: r.addr.Add(uint64(offset))}
	p.Stats.count(len(dst))
	return o.start(ctx, 1)
}

// ReadWord fetches the word of 8 bytes at offset, a multiple of 8, by an atomic
// that adds nothing, which some devices do sooner than a READ. It is the device's
// own atomic: nobody else may access the word meanwhile.
func (r *Remote) ReadWord(ctx context.Context, offset int) (uint64, error) {
	o := r.Peer.bind.ops.take(r)
	o.wr[0] = driver.WorkRequest{Op: driver.OpFetchAdd, Remote: r.addr.Add(uint64(offset))}
	r.Peer.Stats.count(8)
	return o.fetch(ctx, 8)
}
