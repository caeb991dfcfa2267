package fabric

import (
	"math"

	"github.com/gopgas/gopgas/verbs/driver"
)

// maxInline bounds what a post copies, whatever the provider would take.
const maxInline = 64 << 10

// defaultFMA is the switch point where none is asked for: copying a write of
// this size into the combining frame costs less than waiting for the
// acknowledgement that sending it from the caller's slice needs.
const defaultFMA = 64 << 10

// A Path is how a write travels.
type Path uint8

const (
	// Auto: a store into mapped memory, else what PathOf says.
	Auto Path = iota
	// Inline: as Auto, but the device copies as much as it can by itself.
	Inline
	// FMA: copied as it is posted, so that its source is free at once.
	FMA
	// Bulk: from the caller's memory, which is free once the peer has it.
	Bulk
)

// MaxFMA is the largest write that can be copied as it is posted to p.
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

// MaxMessage is the largest transfer of one request, in bytes.
func (r *Remote) MaxMessage() int {
	return int(min(r.Peer.bind.info.MaxMessage, math.MaxInt64))
}

// MaxCopied is the longest part that the device copies by itself, in bytes, 0 where that
// has no advantage over a copy to memory that stays.
func (r *Remote) MaxCopied() int {
	if r.Mem != nil || !r.Peer.bind.info.Writes.LazyInline {
		return 0
	}
	return r.Peer.bind.info.MaxInline
}

// inlineMax is how much a queue pair of b takes inline.
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
