package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// Package driver lets these requests start before an earlier one that is held:
//
//	held      later:  READ   WRITE   atomic   SEND, WRITE_WITH_IMM, or with Fence
//	READ              yes    yes     yes      no
//	atomic            yes    no      no       no
//	others            no     no      no       no
//
// A SEND could pass a READ as well, but it may fail for want of a receive. A
// request that passes must not fail: its failure would flush an earlier one,
// which no device does. So a request passes, or lets later ones pass, only if a
// similar one has succeeded before.

// ahead lists the kinds of requests that are held before a given one.
type ahead struct{ reads, atomics bool }

func (a ahead) any() bool { return a.reads || a.atomics }

// add enters a request of a READ or an atomic.
func (a *ahead) add(op driver.Opcode) {
	if op == driver.OpRead {
		a.reads = true
	} else {
		a.atomics = true
	}
}

// lets reports whether r may start before the requests in a.
func (q *qp) lets(a ahead, r *request) bool {
	if r.Flags&driver.Fence != 0 || !q.proven(&r.WorkRequest) {
		return false
	}
	switch r.Op {
	case driver.OpRead:
		return true
	case driver.OpWrite, driver.OpFetchAdd, driver.OpCmpSwap, driver.OpAtomic, driver.OpAccumulate:
		return !a.atomics
	}
	return false
}

// passable reports whether later requests may start before r while r is held.
func (q *qp) passable(r *request) bool {
	switch r.Op {
	case driver.OpRead, driver.OpFetchAdd, driver.OpCmpSwap, driver.OpAtomic, driver.OpAccumulate:
		return r.yields && q.proven(&r.WorkRequest)
	}
	return false
}

// access is a way to use a remote registration.
type access struct {
	key driver.Key
	op  driver.Opcode
}

// span is the hull of the addresses that requests used in that way with
// success. A registration has no holes, so all addresses in between are valid
// as well.
type span struct{ from, to uint64 }

// proven reports whether an earlier request has shown that wr's access will succeed.
func (q *qp) proven(wr *driver.WorkRequest) bool {
	if len(wr.Runs) > 0 {
		return false
	}
	s, ok := q.proofs[access{wr.Remote.RKey, wr.Op}]
	return ok && s.from <= wr.Remote.Addr && wr.Remote.Addr+extent(wr) <= s.to
}

// extent returns the number of remote bytes of wr. An atomic need not have a
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

// prove records that wr succeeded. Only requests that may start out of order need a proof.
func (q *qp) prove(wr *driver.WorkRequest) {
	if q.dev.plan.Reorder == 0 || len(wr.Runs) > 0 || wr.Op == driver.OpSend || wr.Op == driver.OpWriteImm {
		return
	}
	a := access{wr.Remote.RKey, wr.Op}
	from, to := wr.Remote.Addr, wr.Remote.Addr+extent(wr)
	if s, ok := q.proofs[a]; ok {
		from, to = min(from, s.from), max(to, s.to)
	}
	q.proofs[a] = span{from, to}
}
