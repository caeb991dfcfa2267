package verbs

import "github.com/gopgas/gopgas/verbs/driver"

const allFlags = Signaled | Inline | Fence | Solicited | Announced

// checkSend returns the reason for which the provider must not see wr, or nil.
// It allocates only for that reason.
func (q *QP) checkSend(wr *WorkRequest) error {
	if wr.Flags&^allFlags != 0 {
		return invalid("unknown flags %#x", uint8(wr.Flags&^allFlags))
	}
	if wr.Flags&Announced != 0 && wr.Op != OpWrite {
		return invalid("only a WRITE is announced, not a %v", wr.Op)
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
	default:
		return invalid("opcode %v (%d) cannot be posted", wr.Op, uint8(wr.Op))
	}
}

func (q *QP) checkOut(wr *WorkRequest) error {
	if wr.Flags&Inline == 0 {
		return q.checkSegments(wr.Local, 0)
	}
	if n := wr.Length(); n > q.cfg.MaxInline {
		return invalid("%d bytes inline, this QP takes %d", n, q.cfg.MaxInline)
	}
	return nil // copied before PostSend returns: no key is needed
}

func (q *QP) checkRead(wr *WorkRequest) error {
	if wr.Flags&Inline != 0 {
		return invalid("a READ cannot be inline")
	}
	return q.checkSegments(wr.Local, LocalWrite)
}

func (q *QP) checkExtended(wr *WorkRequest) error {
	if !q.pd.ctx.info.Atomics.Extended {
		return driver.ErrUnsupported
	}
	if wr.Atomic < AtomicAdd || wr.Atomic > AtomicStore {
		return invalid("unknown atomic operation %d", wr.Atomic)
	}
	switch wr.Width {
	case 1, 2, 4, 8:
	default:
		return invalid("atomic of %d bytes, widths are 1, 2, 4 and 8", wr.Width)
	}
	if wr.Atomic == AtomicStore && len(wr.Local) != 0 {
		return invalid("an atomic store has no result: use a swap")
	}
	return q.checkAtomic(wr, int(wr.Width), false)
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
		mr := (*q.pd.mrs.Load())[s.LKey]
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
