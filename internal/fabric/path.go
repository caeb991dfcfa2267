package fabric

import (
	"math"

	"github.com/gopgas/gopgas/verbs/driver"
)

// maxInline bounds the bytes that a post copies, even if the provider takes more.
const maxInline = 64 << 10

// defaultFMA is the switch point if the caller sets none. To copy a write of this size
// into the combining frame costs less than to wait for an acknowledgement. A write from
// the caller's slice needs one.
const defaultFMA = 64 << 10

// A Path says how a write travels.
type Path uint8

const (
	// Auto stores into mapped memory, else takes the result of PathOf.
	Auto Path = iota
	// Inline is as Auto, but the device copies as much as it can by itself.
	Inline
	// FMA copies the write as it posts it, so that the source is free at once.
	FMA
	// Bulk sends from the caller's memory, which is free once the peer has the bytes.
	Bulk
)

// MaxFMA returns the size of the largest write that a post to p can copy.
func (p *Peer) MaxFMA() int {
	if p.bind.info.Memory.LocalKeys {
		return stageSize
	}
	return min(p.bind.info.MaxInline, maxInline)
}

// PathOf returns how a queued write of n bytes to p travels.
func (p *Peer) PathOf(n int) Path {
	limit := p.f.cfg.FMAMax
	if limit <= 0 {
		limit = defaultFMA
	}
	if n <= min(limit, p.MaxFMA()) {
		return FMA
	}
	return Bulk
}

// MaxMessage returns the size of the largest transfer of one request, in bytes.
func (r *Remote) MaxMessage() int {
	return int(min(r.Peer.bind.info.MaxMessage, math.MaxInt64))
}

// MaxCopied returns the length of the longest part that the device copies by itself. It
// returns 0 if that has no advantage over a copy to memory that stays.
func (r *Remote) MaxCopied() int {
	if r.Mem != nil || !r.Peer.bind.info.Writes.LazyInline {
		return 0
	}
	return r.Peer.bind.info.MaxInline
}

// inlineMax returns the number of bytes that a queue pair of b takes inline.
func (b *binding) inlineMax() int {
	if b.info.Writes.LazyInline {
		return b.info.MaxInline
	}
	return min(b.info.MaxInline, maxInline)
}

// wholeWrite reports whether one inline request writes n bytes, the last word behind all
// others.
func (b *binding) wholeWrite(n int) bool {
	return b.info.Writes.Whole && !b.info.Writes.Silent && n <= min(driver.WholeWrite, b.info.MaxInline)
}
