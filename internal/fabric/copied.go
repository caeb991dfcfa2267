package fabric

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// MaxCopied is how many bytes WriteFlagCopied takes in one piece, 0 where that has no
// advantage over a copy to memory that stays.
func (r *Remote) MaxCopied() int {
	if r.Mem != nil || !r.Peer.bind.info.LazyInline {
		return 0
	}
	return r.Peer.bind.info.MaxInline
}

// WriteFlagCopied stores head at offset, body behind it, and then the flag. Both are
// the caller's again when it returns, which waits for room in the queue only. An
// error means that the flag was not posted; a failure later is the peer's error.
//
// Preconditions: neither is longer than MaxCopied, and flag does not add.
func (r *Remote) WriteFlagCopied(ctx context.Context, offset int, head, body []byte, flag Flag) error {
	o := r.Peer.bind.ops.take(r)
	to := r.addr.Add(uint64(offset))
	n := 0
	if len(head) > 0 {
		o.copied(n, to, head)
		n++
	}
	o.copied(n, to.Add(uint64(len(head))), body)
	n++
	n += o.flag(n, r.addr.Add(uint64(flag.Offset)), flag)
	r.Peer.Stats.count(len(head) + len(body) + 8)
	_, err := o.start(ctx, n)
	return err
}

// copied fills request i with a write whose source the post takes.
func (o *op) copied(i int, to driver.RemoteAddr, src []byte) {
	o.seg[i] = driver.Segment{Mem: src}
	o.wr[i] = driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: o.seg[i : i+1], Remote: to}
}

// inlineMax is how much a queue pair of b takes inline.
func (b *binding) inlineMax() int {
	if b.info.LazyInline {
		return b.info.MaxInline
	}
	return min(b.info.MaxInline, maxInline)
}
