package verbstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// refusalCases lists the promises about requests that must fail, and about those around them.
func refusalCases() []testCase {
	return []testCase{
		{"TargetRefusesWhatItsRegionDoesNotGrant", remoteRefusals},
		{"WrongRightIsRefusedEachWay", missingRights},
		{"RequestsBehindARefusedOneAreFlushed", flushedBehind},
		{"UnsignaledRequestCompletesOnError", unsignaledError},
		{"MisalignedAtomicIsNeverPosted", misaligned},
		{"MalformedRequestsAreNeverPosted", malformed},
		{"GoodRequestsBeforeABadOneAreUnderWay", goodBeforeBad},
		{"SegmentsMustLieInTheirRegion", badSegments},
		{"RegionsNeedSensibleRights", badRegions},
	}
}

// refusedBy posts a request that the target must refuse, and checks that the
// target's memory did not change.
func (s *side) refusedBy(b *side, wr verbs.WorkRequest) {
	s.t.Helper()
	before := fill(append([]byte(nil), b.mr.Bytes()...), 5)
	copy(b.mr.Bytes(), before)
	wr.ID, wr.Flags = 77, verbs.Signaled
	s.post(wr)
	wc := s.sent()
	require.Equal(s.t, verbs.RemoteAccess, wc.Status, "%v", wc.Err)
	require.Equal(s.t, uint64(77), wc.ID)
	require.Equal(s.t, s.qp.Num(), wc.QP)
	require.Equal(s.t, verbs.StateErr, s.qp.State())
	s.post(verbs.WorkRequest{ID: 78, Op: verbs.OpWrite, Local: segs(s.at(0, 8)), Remote: b.mr.Remote(0)})
	wc = s.sent()
	require.Equal(s.t, verbs.Flushed, wc.Status)
	require.Equal(s.t, uint64(78), wc.ID)
	require.True(s.t, string(before) == string(b.mr.Bytes()), "the target's memory changed")
}

// remoteRefusals has a target refuse addresses and keys that its region does not grant.
func remoteRefusals(t *testing.T, h Harness) {
	const size = 64 << 10 // of the region
	for name, spoil := range spoiledAddresses(size) {
		t.Run(name, func(t *testing.T) {
			for _, op := range []verbs.Opcode{verbs.OpWrite, verbs.OpRead} {
				a, b := newPair(t, h)
				wr := verbs.WorkRequest{Op: op, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}
				spoil(&wr.Remote)
				a.refusedBy(b, wr)
			}
		})
	}
	t.Run("AtomicBeyondTheEnd", func(t *testing.T) {
		a, b := newPair(t, h)
		a.refusedBy(b, verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: 1, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(size)})
	})
	t.Run("LargeWriteThatEndsOneByteOutside", func(t *testing.T) {
		a, b := newPair(t, h)
		a.refusedBy(b, verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 60000)), Remote: b.mr.Remote(size - 59999)})
	})
	t.Run("KeyOfTheOtherEnd", func(t *testing.T) {
		a, b := newPair(t, h)
		a.refusedBy(b, verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: a.mr.Remote(0)})
	})
}

// spoiledAddresses returns functions that make an address and key in a region of size bytes wrong.
func spoiledAddresses(size uint64) map[string]func(r *verbs.RemoteAddr) {
	return map[string]func(r *verbs.RemoteAddr){
		"KeyOfNothing":       func(r *verbs.RemoteAddr) { r.RKey = verbs.Key{Hi: 1, Lo: 2} },
		"ZeroKey":            func(r *verbs.RemoteAddr) { r.RKey = verbs.Key{} },
		"KeyWithOneBitWrong": func(r *verbs.RemoteAddr) { r.RKey.Lo ^= 1 },
		"KeyWithAHighBitWrong": func(r *verbs.RemoteAddr) {
			if r.RKey.Hi != 0 {
				r.RKey.Hi ^= 1 << 40
			} else { // a device with 32-bit keys
				r.RKey.Lo ^= 1 << 30
			}
		},
		"OneByteBeyondTheEnd":        func(r *verbs.RemoteAddr) { r.Addr += size - 7 },
		"FarBeyondTheEnd":            func(r *verbs.RemoteAddr) { r.Addr += size << 8 },
		"OneByteBeforeTheStart":      func(r *verbs.RemoteAddr) { r.Addr-- },
		"AddressPlusLengthOverflows": func(r *verbs.RemoteAddr) { r.Addr = ^uint64(0) - 3 },
	}
}

// missingRights posts each operation to a region that lacks its right.
func missingRights(t *testing.T, h Harness) {
	for _, c := range []struct {
		access verbs.Access
		op     verbs.Opcode
	}{
		{verbs.AllAccess &^ verbs.RemoteWrite, verbs.OpWrite},
		{verbs.AllAccess &^ verbs.RemoteWrite, verbs.OpWriteImm},
		{verbs.AllAccess &^ verbs.RemoteRead, verbs.OpRead},
		{verbs.AllAccess &^ verbs.RemoteAtomic, verbs.OpFetchAdd},
		{verbs.AllAccess &^ verbs.RemoteAtomic, verbs.OpCmpSwap},
		{0, verbs.OpWrite},
		{0, verbs.OpRead},
	} {
		t.Run(c.access.String()+" "+c.op.String(), func(t *testing.T) {
			a, b := newPair(t, h, withAccess(c.access))
			if c.op == verbs.OpWriteImm {
				b.postRecv(verbs.RecvRequest{ID: 1})
			}
			a.refusedBy(b, verbs.WorkRequest{Op: c.op, Operand: 1, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
		})
	}
}

// flushedBehind posts good requests, a bad one and good ones: those behind the bad one have no effect and
// complete as flushed, in order.
func flushedBehind(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	bad := b.mr.Remote(0)
	bad.RKey.Hi, bad.RKey.Lo = 3, 4
	a.post(
		verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)},
		verbs.WorkRequest{ID: 2, Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: bad},
		verbs.WorkRequest{ID: 3, Op: verbs.OpWrite, Local: segs(fillSegment(a.at(8, 8))), Remote: b.mr.Remote(64)},
		verbs.WorkRequest{ID: 4, Op: verbs.OpRead, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)})
	for id, want := range []verbs.Status{verbs.Success, verbs.RemoteAccess, verbs.Flushed, verbs.Flushed} {
		wc := a.sent()
		require.Equal(t, uint64(id+1), wc.ID)
		require.Equal(t, want, wc.Status)
	}
	require.True(t, zero(b.bytes(64, 8)), "a flushed write took effect")
}

func fillSegment(s verbs.Segment) verbs.Segment {
	fill(s.Mem, 1)
	return s
}

// unsignaledError posts unsignaled requests of which the last one fails: only that one completes.
func unsignaledError(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for range 3 {
		a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
	}
	bad := b.mr.Remote(b.cfg.memory)
	a.post(verbs.WorkRequest{ID: 2, Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: bad})
	wc := a.sent()
	require.Equal(t, uint64(2), wc.ID, "only the failure completes")
	require.Equal(t, verbs.RemoteAccess, wc.Status)
}

// refusesToPost wants err from PostSend, no request taken, and a QP that still
// works.
func (s *side) refusesToPost(b *side, wr verbs.WorkRequest, err error) {
	s.t.Helper()
	wr.Flags |= verbs.Signaled
	n, got := s.qp.PostSend([]verbs.WorkRequest{wr})
	require.Zero(s.t, n)
	require.ErrorIs(s.t, got, err)
	var op *verbs.OpError
	require.ErrorAs(s.t, got, &op)
	require.Equal(s.t, 0, op.Index)
	require.Equal(s.t, s.qp.Num(), op.QP)
	s.do(verbs.WorkRequest{ID: 9, Op: verbs.OpWrite, Local: segs(s.at(0, 8)), Remote: b.mr.Remote(0)})
}

// misaligned posts atomics at addresses that their width does not divide.
func misaligned(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for _, off := range []int{1, 2, 4, 7} {
		wr := verbs.WorkRequest{Op: verbs.OpFetchAdd, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(off)}
		a.refusesToPost(b, wr, driver.ErrInvalid)
		wr.Op = verbs.OpCmpSwap
		a.refusesToPost(b, wr, driver.ErrInvalid)
	}
	if a.ctx.Info().Atomics.Extended {
		for width, off := range map[uint8]int{2: 1, 4: 2, 8: 4} {
			a.refusesToPost(b, verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicAdd, Width: width, Remote: b.mr.Remote(off)}, driver.ErrInvalid)
		}
	}
}

// malformed posts requests with wrong fields. Devices without extended atomics refuse those with another error.
func malformed(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for name, c := range malformedRequests(a, b) {
		t.Run(name, func(t *testing.T) { a.refusesToPost(b, c.wr, c.err) })
	}
}

// A refusal is a request that PostSend refuses with err.
type refusal struct {
	wr  verbs.WorkRequest
	err error
}

// malformedRequests returns requests that package verbs must refuse before any device sees them,
// each with its error. A device that takes any number of inline bytes has no case for too many.
func malformedRequests(a, b *side) map[string]refusal {
	to, eight := b.mr.Remote(0), segs(a.at(0, 8))
	extended := driver.ErrInvalid
	if !a.ctx.Info().Atomics.Extended {
		extended = driver.ErrUnsupported
	}
	tooMany := segs(a.at(0, 1), a.at(1, 1), a.at(2, 1), a.at(3, 1), a.at(4, 1))
	inline, huge := segs(a.at(0, 1)), a.ctx.Info().MaxInline >= a.cfg.memory
	if !huge {
		inline = segs(a.at(0, a.ctx.Info().MaxInline+1))
	}
	cases := map[string]refusal{
		"no opcode":                 {verbs.WorkRequest{Local: eight, Remote: to}, driver.ErrInvalid},
		"opcode of a completion":    {verbs.WorkRequest{Op: verbs.OpRecv, Local: eight, Remote: to}, driver.ErrInvalid},
		"unknown opcode":            {verbs.WorkRequest{Op: 200, Local: eight, Remote: to}, driver.ErrInvalid},
		"unknown flag":              {verbs.WorkRequest{Op: verbs.OpWrite, Flags: 1 << 7, Local: eight, Remote: to}, driver.ErrInvalid},
		"too many segments":         {verbs.WorkRequest{Op: verbs.OpWrite, Local: tooMany, Remote: to}, driver.ErrInvalid},
		"too much inline":           {verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Inline, Local: inline, Remote: to}, driver.ErrInvalid},
		"inline read":               {verbs.WorkRequest{Op: verbs.OpRead, Flags: verbs.Inline, Local: eight, Remote: to}, driver.ErrInvalid},
		"inline atomic":             {verbs.WorkRequest{Op: verbs.OpFetchAdd, Flags: verbs.Inline, Local: eight, Remote: to}, driver.ErrInvalid},
		"fetch-add without result":  {verbs.WorkRequest{Op: verbs.OpFetchAdd, Remote: to}, driver.ErrInvalid},
		"result of the wrong size":  {verbs.WorkRequest{Op: verbs.OpFetchAdd, Local: segs(a.at(0, 4)), Remote: to}, driver.ErrInvalid},
		"two results":               {verbs.WorkRequest{Op: verbs.OpCmpSwap, Local: segs(a.at(0, 4), a.at(4, 4)), Remote: to}, driver.ErrInvalid},
		"atomic of no width":        {verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicAdd, Remote: to}, extended},
		"atomic of three bytes":     {verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicAdd, Width: 3, Remote: to}, extended},
		"atomic of 16 bytes":        {verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicSwap, Width: 16, Remote: to}, extended},
		"unknown atomic":            {verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: 99, Width: 8, Remote: to}, extended},
		"atomic result of one byte": {verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicAdd, Width: 8, Local: segs(a.at(0, 1)), Remote: to}, extended},
	}
	if huge {
		delete(cases, "too much inline")
	}
	return cases
}

// goodBeforeBad posts four requests, of which the third is malformed: the first two complete, the
// fourth was never taken.
func goodBeforeBad(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	fill(a.bytes(0, 16), 1)
	wrs := []verbs.WorkRequest{
		{ID: 1, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)},
		{ID: 2, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(8, 8)), Remote: b.mr.Remote(8)},
		{ID: 3, Op: 99},
		{ID: 4, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(16)},
	}
	taken := 0
	for taken < 2 { // a wrapper may take fewer at a time
		n, err := a.qp.PostSend(wrs[taken:])
		require.Error(t, err)
		taken += n
		if taken == 2 {
			var op *verbs.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, n, op.Index)
		}
	}
	require.Equal(t, uint64(1), a.sent().ID)
	require.Equal(t, uint64(2), a.sent().ID)
	a.flush(b)
	require.Equal(t, pattern(16, 1), b.bytes(0, 16))
	require.True(t, zero(b.bytes(16, 8)))
}

// badSegments posts requests whose local memory is not that of their key, or may not be written.
func badSegments(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	readOnly, to := a.newMR(4096, 0), b.mr.Remote(0)
	other, err := a.ctx.AllocPD()
	require.NoError(t, err)
	foreign, err := other.RegMR(testwatch.Context(t), h.NewMemory(t, 4096), verbs.AllAccess)
	require.NoError(t, err)
	closed := a.newMR(4096, verbs.AllAccess)
	gone := segment(t, closed, 0, 8)
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		op  verbs.Opcode
		seg verbs.Segment
	}{
		"memory of no region":        {verbs.OpWrite, verbs.Segment{Mem: make([]byte, 8), LKey: a.mr.LKey()}},
		"memory beyond the region":   {verbs.OpWrite, verbs.Segment{Mem: readOnly.Bytes()[:8], LKey: a.mr.LKey()}},
		"key of nothing":             {verbs.OpWrite, verbs.Segment{Mem: a.bytes(0, 8), LKey: verbs.Key{Hi: 9, Lo: 9}}},
		"key of another PD":          {verbs.OpWrite, segment(t, foreign, 0, 8)},
		"key of a closed region":     {verbs.OpWrite, gone},
		"read to read-only memory":   {verbs.OpRead, segment(t, readOnly, 0, 8)},
		"result in read-only memory": {verbs.OpFetchAdd, segment(t, readOnly, 0, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			a.refusesToPost(b, verbs.WorkRequest{Op: c.op, Local: segs(c.seg), Remote: to}, driver.ErrAccess)
		})
	}
	n, err := a.qp.PostRecv([]verbs.RecvRequest{{Local: segs(segment(t, readOnly, 0, 8))}})
	require.Zero(t, n)
	require.ErrorIs(t, err, driver.ErrAccess)
	_, err = a.mr.Segment(a.cfg.memory-4, 8)
	require.ErrorIs(t, err, driver.ErrInvalid)
	_, err = a.mr.Segment(-1, 8)
	require.ErrorIs(t, err, driver.ErrInvalid)
}

// badRegions registers memory with rights that do not go together, and no memory.
func badRegions(t *testing.T, h Harness) {
	a, _ := newStrangers(t, h)
	mem := h.NewMemory(t, 4096)
	for _, access := range []verbs.Access{verbs.RemoteWrite, verbs.RemoteAtomic, 1 << 7} {
		_, err := a.pd.RegMR(testwatch.Context(t), mem, access)
		require.ErrorIs(t, err, driver.ErrInvalid)
	}
	_, err := a.pd.RegMR(testwatch.Context(t), verbs.Memory{}, verbs.AllAccess)
	require.ErrorIs(t, err, driver.ErrInvalid)
}
