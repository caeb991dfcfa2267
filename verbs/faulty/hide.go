package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// hide takes from info the abilities that the plan hides, and lowers its limits.
func (p *Plan) hide(info *driver.DeviceInfo) {
	if p.HideExtendedAtomics {
		info.Atomics.Extended = false
	}
	info.Blocks = info.Blocks && !p.HideBlocks
	info.Writes.Applied = info.Writes.Applied && !p.HideAppliedWrites
	info.Atomics.Coherent = info.Atomics.Coherent && !p.HideCoherentAtomics
	info.Memory.LocalKeys = info.Memory.LocalKeys || p.NeedLocalKeys
	if p.MaxInline > 0 {
		info.MaxInline = min(info.MaxInline, p.MaxInline)
	}
	if p.MaxDepth > 0 {
		info.MaxQPDepth = min(info.MaxQPDepth, p.MaxDepth)
	}
	if p.hidesMapper() {
		info.Memory.Maps = false
	}
}

// hides reports whether the device claims not to know such requests.
func (p *Plan) hides(wr *driver.WorkRequest) bool {
	switch wr.Op {
	case driver.OpAtomic, driver.OpAccumulate:
		return p.HideExtendedAtomics || p.HideBlocks && len(wr.Runs) > 0
	case driver.OpWriteBlocks, driver.OpReadBlocks:
		return p.HideBlocks
	}
	return false
}

// expose gives q the optional capabilities of the wrapped QP that the plan does
// not hide.
func (p *Plan) expose(q *qp) driver.QP {
	mapper, maps := q.QP.(driver.Mapper)
	_, cancels := q.QP.(driver.Canceler)
	maps = maps && !p.hidesMapper()
	cancels = cancels && !p.HideCanceler
	switch {
	case maps && cancels:
		return struct {
			*qp
			driver.Mapper
			canceler
		}{q, mapper, canceler{q}}
	case maps:
		return struct {
			*qp
			driver.Mapper
		}{q, mapper}
	case cancels:
		return struct {
			*qp
			canceler
		}{q, canceler{q}}
	}
	return q
}
