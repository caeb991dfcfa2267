package verbs

import (
	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/verbs/driver"
)

const allFlags = Signaled | Inline | Fence | Solicited | Announced | Fetch

// checkSend returns the reason for which the provider must not see wr, or nil.
// It allocates only for that reason.
func (q *QP) checkSend(wr *WorkRequest) error {
	if wr.Flags&^allFlags != 0 {
		return invalid("unknown flags %#x", uint8(wr.Flags&^allFlags))
	}
	if wr.Flags&Announced != 0 && wr.Op != OpWrite {
		return invalid("only a WRITE is announced, not a %v", wr.Op)
	}
	if wr.Flags&Fetch != 0 && wr.Op != OpAccumulate {
		return invalid("only an ACCUMULATE has the flag Fetch, not a %v", wr.Op)
	}
	if len(wr.Runs) > 0 && wr.Op != OpWriteBlocks && wr.Op != OpReadBlocks && wr.Op != OpAccumulate {
		return invalid("only a WRITE_BLOCKS, a READ_BLOCKS or an ACCUMULATE has runs, not a %v", wr.Op)
	}
	if len(wr.Local) > q.cfg.MaxSegments {
		return invalid("%d segments, this QP takes %d", len(wr.Local), q.cfg.MaxSegments)
	}
	switch wr.Op {
	case OpWrite, OpWriteImm, OpSend:
		return q.checkOut(wr)
	case OpRead:
		return q.checkRead(wr)
	case OpFetchAdd, OpCmpSwap:
		return q.checkAtomic(wr, 8, true)
	case OpAtomic:
		return q.checkExtended(wr)
	case OpAccumulate:
		return q.checkAccumulate(wr)
	case OpWriteBlocks, OpReadBlocks:
		return q.checkBlocks(wr)
	default:
		return invalid("opcode %v (%d) cannot be posted", wr.Op, uint8(wr.Op))
	}
}

// checkOut checks the segments of a request that sends bytes. Inline bytes need no key.
func (q *QP) checkOut(wr *WorkRequest) error {
	if wr.Flags&Inline == 0 {
		return q.checkSegments(wr.Local, 0)
	}
	if n := wr.Length(); n > q.cfg.MaxInline {
		return invalid("%d bytes inline, this QP takes %d", n, q.cfg.MaxInline)
	}
	return nil // copied before PostSend returns: no key is needed
}

// checkRead checks the local side of a READ.
func (q *QP) checkRead(wr *WorkRequest) error {
	if wr.Flags&Inline != 0 {
		return invalid("a READ cannot be inline")
	}
	return q.checkSegments(wr.Local, LocalWrite)
}

// checkExtended checks an atomic of any operation and width.
func (q *QP) checkExtended(wr *WorkRequest) error {
	if !q.pd.ctx.info.Atomics.Extended {
		return driver.ErrUnsupported
	}
	if !wr.Atomic.Fits(8) {
		return invalid("unknown atomic operation %d", wr.Atomic)
	}
	if wr.Width > 8 || !wr.Atomic.Fits(int(wr.Width)) {
		return invalid("atomic of %d bytes, widths are 1, 2, 4 and 8; of floats 4 and 8", wr.Width)
	}
	if wr.Atomic == AtomicStore && len(wr.Local) != 0 {
		return invalid("an atomic store has no result: use a swap")
	}
	return q.checkAtomic(wr, int(wr.Width), false)
}

// checkAccumulate checks an atomic on a slice. The device relies on whole elements at aligned
// addresses, in one segment.
func (q *QP) checkAccumulate(wr *WorkRequest) error {
	info := q.pd.ctx.info.Atomics
	if !info.Extended || wr.Width == 16 && !info.Pairs {
		return driver.ErrUnsupported
	}
	width, n := int(wr.Width), wr.Length()
	switch {
	case !wr.Atomic.Fits(width) || wr.Atomic == AtomicCmpSwap:
		return invalid("operation %d does not accumulate in elements of %d bytes", wr.Atomic, width)
	case wr.Atomic == AtomicLoad && wr.Flags&Fetch == 0:
		return invalid("an accumulate that loads needs the flag Fetch")
	case len(wr.Local) != 1 || n == 0 || n%width != 0 || n > driver.MaxAccumulate:
		return invalid("%d bytes in %d segments for an accumulate; it takes one of whole elements of %d bytes, at most %d bytes",
			n, len(wr.Local), width, driver.MaxAccumulate)
	case wr.Remote.Addr%uint64(width) != 0:
		return invalid("remote address %#x is not a multiple of the element's %d bytes", wr.Remote.Addr, width)
	case wr.Flags&Fetch != 0 && wr.Flags&Inline != 0:
		return invalid("an accumulate that fetches cannot be inline")
	case len(wr.Runs) > 0:
		if err := q.checkRuns(wr); err != nil {
			return err
		}
		if !blocks.Aligned(wr.Runs, width) {
			return invalid("a run has blocks that are not whole elements of %d bytes, at multiples of it", width)
		}
	}
	if wr.Flags&Fetch == 0 {
		return q.checkOut(wr)
	}
	return q.checkSegments(wr.Local, LocalWrite)
}

// checkBlocks checks a request for runs of blocks.
func (q *QP) checkBlocks(wr *WorkRequest) error {
	if err := q.checkRuns(wr); err != nil {
		return err
	}
	if wr.Op == OpReadBlocks {
		return q.checkRead(wr)
	}
	return q.checkOut(wr)
}

// checkRuns checks the blocks of a request, and the one segment for them.
func (q *QP) checkRuns(wr *WorkRequest) error {
	if !q.pd.ctx.info.Blocks {
		return driver.ErrUnsupported
	}
	n := wr.Length()
	size, _, _, ok := blocks.Span(wr.Runs)
	switch {
	case !ok:
		return invalid("a run has blocks without bytes, no block, or places beyond all memory")
	case len(wr.Local) != 1 || size == 0 || size != n:
		return invalid("%d bytes in %d segments for blocks of %d bytes", n, len(wr.Local), size)
	case n+len(wr.Runs)*driver.RunSize > driver.MaxBlocks:
		return invalid("%d bytes in %d runs; together they may have %d bytes, %d for a run", n, len(wr.Runs), driver.MaxBlocks, driver.RunSize)
	}
	return nil
}

// checkAtomic checks an atomic's address, result and rights. Some devices never
// complete a misaligned atomic.
func (q *QP) checkAtomic(wr *WorkRequest, width int, result bool) error {
	if wr.Flags&Inline != 0 {
		return invalid("an atomic cannot be inline")
	}
	if wr.Remote.Addr%uint64(width) != 0 {
		return invalid("remote address %#x is not a multiple of the atomic's %d bytes", wr.Remote.Addr, width)
	}
	if len(wr.Local) > 1 || result && len(wr.Local) == 0 {
		return invalid("%d segments for the one result of an atomic", len(wr.Local))
	}
	if len(wr.Local) == 1 && len(wr.Local[0].Mem) != width {
		return invalid("%d bytes for the result of an atomic of %d", len(wr.Local[0].Mem), width)
	}
	return q.checkSegments(wr.Local, LocalWrite)
}

// checkRecv checks a receive.
func (q *QP) checkRecv(wr *RecvRequest) error {
	if len(wr.Local) > q.cfg.MaxSegments {
		return invalid("%d segments, this QP takes %d", len(wr.Local), q.cfg.MaxSegments)
	}
	return q.checkSegments(wr.Local, LocalWrite)
}

// checkSegments requires that every segment lies in a region of this PD that
// has the rights in need. Together they must not exceed the device's message
// size.
func (q *QP) checkSegments(segs []Segment, need Access) error {
	total := uint64(0)
	for i := range segs {
		s := &segs[i]
		total += uint64(len(s.Mem))
		if s.LKey == (Key{}) && !q.pd.ctx.info.Memory.LocalKeys || len(s.Mem) == 0 {
			continue
		}
		mr := q.pd.mrs.find(s.LKey)
		if mr == nil {
			return refused("segment %d: local key %v names no region of this PD", i, s.LKey)
		}
		if !contains(mr.mem, s.Mem) {
			return refused("segment %d: its memory is not all in the region that its key names", i)
		}
		if mr.access&need != need {
			return refused("segment %d: its region lacks %v", i, need)
		}
	}
	if total > q.pd.ctx.info.MaxMessage {
		return invalid("%d bytes, the device takes %d in one message", total, q.pd.ctx.info.MaxMessage)
	}
	return nil
}
