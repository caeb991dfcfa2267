package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// What may start before an earlier request that is held, per package driver:
//
//	held      later:  READ   WRITE   atomic   SEND, WRITE_WITH_IMM, or with Fence
//	READ              yes    yes     yes      no
//	atomic            yes    no      no       no
//	others            no     no      no       no
//
// A SEND could pass a READ as well, but it may fail for want of a receive. A
// request that passes must not fail, since an earlier one would be flushed
// through its fault, which no device does: only requests like one that
// succeeded before pass and are passed.

// ahead says what is held before the request that wants to start.
type ahead struct{ reads, atomics bool }

func (a ahead) any() bool { return a.reads || a.atomics }

func (a *ahead) add(op driver.Opcode) {
	if op == driver.OpRead {
		a.reads = true
	} else {
		a.atomics = true
	}
}

// lets reports whether r may start before the requests that are held.
func (q *qp) lets(a ahead, r *request) bool {
	if r.Flags&driver.Fence != 0 || !q.proven(&r.WorkRequest) {
		return false
	}
	switch r.Op {
	case driver.OpRead:
		return true
	case driver.OpWrite, driver.OpFetchAdd, driver.OpCmpSwap, driver.OpAtomic:
		return !a.atomics
	}
	return false
}

// passable reports whether others may start before r while r is held.
func (q *qp) passable(r *request) bool {
	switch r.Op {
	case driver.OpRead, driver.OpFetchAdd, driver.OpCmpSwap, driver.OpAtomic:
		return r.yields && q.proven(&r.WorkRequest)
	}
	return false
}

// access is a way to use a remote registration.
type access struct {
	key driver.Key
	op  driver.Opcode
}

// span is the hull of addresses that were used in that way with success. A
// registration has no holes, so all between them is good as well.
type span struct{ from, to uint64 }

func (q *qp) proven(wr *driver.WorkRequest) bool {
	s, ok := q.proofs[access{wr.Remote.RKey, wr.Op}]
	return ok && s.from <= wr.Remote.Addr && wr.Remote.Addr+extent(wr) <= s.to
}

// extent is how many remote bytes wr is about. An atomic need not have a
// segment for its result.
func extent(wr *driver.WorkRequest) uint64 {
	switch wr.Op {
	case driver.OpFetchAdd, driver.OpCmpSwap:
		return 8
	case driver.OpAtomic:
		return uint64(wr.Width)
	}
	return uint64(wr.Length())
}

// prove notes that wr succeeded.
func (q *qp) prove(wr *driver.WorkRequest) {
	if q.dev.plan.Reorder == 0 || wr.Op == driver.OpSend || wr.Op == driver.OpWriteImm {
		return
	}
	a := access{wr.Remote.RKey, wr.Op}
	from, to := wr.Remote.Addr, wr.Remote.Addr+extent(wr)
	if s, ok := q.proofs[a]; ok {
		from, to = min(from, s.from), max(to, s.to)
	}
	q.proofs[a] = span{from, to}
}
