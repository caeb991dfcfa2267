package fabric

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Source is memory of this rank that a write leaves from and that stays as it
// is until the target is seen to have it: N bytes at Offset of a region.
type Source struct {
	Region    *Region
	Offset, N int
	Path      Path // FMA where the device copies that much by itself, else Bulk
}

// WriteFlagFrom is WriteFlag from memory that stays: nobody waits for local
// completion, nothing is copied on the way to the device, and a failure is the
// peer's error. Source and flag are two requests of one post; a source beyond
// MaxMessage is posted in pieces before that.
//
// Preconditions: the peer's memory is not mapped, flag does not add, and the
// region is closed only once the flag was seen to have arrived.
func (r *Remote) WriteFlagFrom(ctx context.Context, offset int, src Source, flag Flag) error {
	most := r.MaxMessage()
	if src.N > most {
		head := src
		head.N = (src.N - 1) / most * most
		if err := r.WriteFrom(ctx, offset, head); err != nil {
			return err
		}
		offset, src.Offset, src.N = offset+head.N, src.Offset+head.N, src.N-head.N
	}
	o := r.Peer.bind.ops.take(r)
	o.writeFrom(0, r.addr.Add(uint64(offset)), src)
	n := o.flag(1, r.addr.Add(uint64(flag.Offset)), flag)
	r.Peer.Stats.count(src.N + 8)
	_, err := o.start(ctx, 1+n)
	return err
}

// WriteFrom is WriteFlagFrom without its flag, which the caller posts behind it.
func (r *Remote) WriteFrom(ctx context.Context, offset int, src Source) error {
	for most, rest := r.MaxMessage(), src.N; rest > 0; rest -= src.N {
		src.N = min(rest, most)
		o := r.Peer.bind.ops.take(r)
		o.writeFrom(0, r.addr.Add(uint64(offset)), src)
		r.Peer.Stats.count(src.N)
		if _, err := o.start(ctx, 1); err != nil {
			return err
		}
		offset, src.Offset = offset+src.N, src.Offset+src.N
	}
	return nil
}

// writeFrom fills request i with a write whose source stays. Without the device's
// copy it is signalled, so that the operation is not used again too early, and
// left alone.
func (o *op) writeFrom(i int, to driver.RemoteAddr, src Source) {
	mem := src.Region.mem.Bytes[src.Offset:][:src.N:src.N]
	o.seg[i] = driver.Segment{Mem: mem, LKey: src.Region.mrs[o.bind].LKey()}
	o.wr[i] = driver.WorkRequest{Op: driver.OpWrite, Local: o.seg[i : i+1], Remote: to}
	if src.Path == FMA && src.N <= min(o.bind.info.MaxInline, maxInline) {
		o.wr[i].Flags = driver.Inline
		return
	}
	o.wr[i].ID, o.wr[i].Flags = o.id, driver.Signaled
	o.alone = true
}
