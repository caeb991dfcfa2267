package verbstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
)

// messageCases lists the promises about SEND and WRITE_WITH_IMM, which consume receives of the
// peer.
func messageCases() []testCase {
	return []testCase{
		{"SendArrivesInPostedReceive", sendSizes},
		{"SendScattersOverSegments", sendScatters},
		{"SendWaitsForReceive", sendBeforeReceive},
		{"RequestsBehindWaitingSendKeepTheirOrder", behindWaitingSend},
		{"InlineSendThatWaitsKeepsItsData", inlineSendWaits},
		{"ManySendsArriveInOrder", manySends},
		{"SendLongerThanReceiveIsAnError", sendTooLong},
		{"WriteImmPlacesDataAndConsumesReceive", writeImm},
		{"WriteImmWithoutDataIsANotice", writeImmEmpty},
		{"WriteImmWaitsForReceive", writeImmBeforeReceive},
		{"ReceivesCanBePostedInINIT", receiveInInit},
		{"CancelEndsWaitingSend", cancelSend},
		{"RequestsBehindACanceledSendGoOn", behindCanceledSend},
	}
}

// sendSizes sends each size into a receive with a byte of room to spare. The completion counts the
// message, not the room.
func sendSizes(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i, n := range transferSizes {
		fill(a.bytes(3, n), n)
		b.postRecv(verbs.RecvRequest{ID: uint64(100 + i), Local: segs(b.at(1, n+1))})
		a.do(verbs.WorkRequest{ID: uint64(i), Op: verbs.OpSend, Flags: verbs.Solicited, Local: segs(a.at(3, n))})
		wc := b.received()
		require.Equal(t, verbs.Completion{ID: uint64(100 + i), Op: verbs.OpRecv, Bytes: n, QP: b.qp.Num()}, wc)
		require.Equal(t, pattern(n, n), b.bytes(1, n)[:n:n])
	}
}

// sendScatters gathers a message from two segments and scatters it over four, one of them empty.
// Nothing is written behind its end.
func sendScatters(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	fill(a.bytes(0, 10), 1)
	fill(a.bytes(100, 2990), 2)
	want := append(pattern(10, 1), pattern(2990, 2)...)
	b.postRecv(verbs.RecvRequest{Local: segs(b.at(50, 7), b.at(0, 0), b.at(1000, 2000), b.at(5000, 3000))})
	a.do(verbs.WorkRequest{Op: verbs.OpSend, Local: segs(a.at(0, 10), a.at(100, 2990))})
	require.Equal(t, 3000, b.received().Bytes)
	require.Equal(t, want[:7], b.bytes(50, 7))
	require.Equal(t, want[7:2007], b.bytes(1000, 2000))
	require.Equal(t, want[2007:], b.bytes(5000, 993))
	require.Zero(t, b.bytes(5993, 1)[0])
}

// sendBeforeReceive posts sends to a peer without receives. They wait there, and end in order as
// receives come.
func sendBeforeReceive(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range 8 {
		fill(a.bytes(i*100, 100), i)
		a.post(verbs.WorkRequest{ID: uint64(i), Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(i*100, 100))})
	}
	for i := range 8 {
		b.postRecv(verbs.RecvRequest{ID: uint64(i), Local: segs(b.at(i*100, 100))})
		require.Equal(t, uint64(i), b.received().ID)
		require.Equal(t, pattern(100, i), b.bytes(i*100, 100))
		require.Equal(t, uint64(i), a.sent().ID)
	}
}

// behindWaitingSend posts a WRITE between sends that wait for receives. The WRITE must not overtake
// the first, nor come behind the second.
func behindWaitingSend(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	fill(a.bytes(0, 100), 1)
	a.post(
		verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 4))},
		verbs.WorkRequest{ID: 2, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 100)), Remote: b.mr.Remote(500)},
		verbs.WorkRequest{ID: 3, Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 8))})
	b.postRecv(
		verbs.RecvRequest{ID: 11, Local: segs(b.at(0, 16))},
		verbs.RecvRequest{ID: 12, Local: segs(b.at(0, 16))})
	require.Equal(t, 4, b.received().Bytes)
	require.Equal(t, 8, b.received().Bytes)
	require.Equal(t, pattern(100, 1), b.bytes(500, 100))
	for id := range uint64(3) {
		require.Equal(t, id+1, a.sent().ID)
	}
}

// inlineSendWaits clears the source of an inline send that still waits for a receive.
func inlineSendWaits(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	n := min(inlineLimit(t, a), 32)
	fill(a.bytes(0, n), 1)
	a.post(verbs.WorkRequest{Op: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, Local: segs(a.at(0, n/2), a.at(n/2, n-n/2))})
	clear(a.bytes(0, n))
	b.postRecv(verbs.RecvRequest{Local: segs(b.at(0, n))})
	require.Equal(t, n, b.received().Bytes)
	require.Equal(t, pattern(n, 1), b.bytes(0, n))
	require.Equal(t, verbs.Success, a.sent().Status)
}

// manySends keeps 16 sends under way for as many receives, each of which is posted again once it
// was used.
func manySends(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const total = 400
	for i := range 16 {
		b.postRecv(verbs.RecvRequest{ID: uint64(i), Local: segs(b.at(i*64, 64))})
	}
	sent := 0
	for got := range total {
		for ; sent < total && sent < got+16; sent++ {
			fill(a.bytes(sent%32*64, 64), sent)
			a.post(verbs.WorkRequest{ID: uint64(sent), Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(sent%32*64, 64))})
		}
		wc := b.received()
		require.Equal(t, verbs.Success, wc.Status)
		require.Equal(t, uint64(got%16), wc.ID)
		require.Equal(t, pattern(64, got), b.bytes(got%16*64, 64))
		b.postRecv(verbs.RecvRequest{ID: wc.ID, Local: segs(b.at(int(wc.ID)*64, 64))})
		require.Equal(t, uint64(got), a.sent().ID)
	}
}

// sendTooLong sends a byte more than the receive takes. Both ends fail, later receives are flushed,
// and no byte lies behind the receive.
func sendTooLong(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	fill(b.bytes(0, 200), 9)
	b.postRecv(verbs.RecvRequest{ID: 5, Local: segs(b.at(0, 99))}, verbs.RecvRequest{ID: 6, Local: segs(b.at(200, 99))})
	a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 100))})
	wc := b.received()
	require.Equal(t, uint64(5), wc.ID)
	require.Equal(t, verbs.LocalLength, wc.Status)
	wc = b.received()
	require.Equal(t, uint64(6), wc.ID)
	require.Equal(t, verbs.Flushed, wc.Status)
	wc = a.sent()
	require.Equal(t, uint64(1), wc.ID)
	require.Equal(t, verbs.RemoteInvalid, wc.Status)
	require.Equal(t, pattern(200, 9)[99:], b.bytes(99, 101), "beyond the receive")
}

// writeImm compares each field of the receive's completion. The receive has no segment: the data
// goes to the region.
func writeImm(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i, n := range []int{1, 8, 100, 20000} {
		fill(a.bytes(0, n), i)
		b.postRecv(verbs.RecvRequest{ID: 40 + uint64(i)})
		a.do(verbs.WorkRequest{ID: 7, Op: verbs.OpWriteImm, Imm: 0xDEADBEEF + uint32(i), Local: segs(a.at(0, n)), Remote: b.mr.Remote(3)})
		require.Equal(t, verbs.Completion{ID: 40 + uint64(i), Op: verbs.OpRecvImm, HasImm: true,
			Imm: 0xDEADBEEF + uint32(i), Bytes: n, QP: b.qp.Num()}, b.received())
		require.Equal(t, pattern(n, i), b.bytes(3, n))
	}
}

func writeImmEmpty(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	b.postRecv(verbs.RecvRequest{ID: 4, Local: segs(b.at(0, 64))}, verbs.RecvRequest{ID: 5})
	for i, local := range [][]verbs.Segment{nil, segs(a.at(0, 0))} {
		a.do(verbs.WorkRequest{Op: verbs.OpWriteImm, Imm: uint32(i), Local: local, Remote: b.mr.Remote(0)})
		require.Equal(t, verbs.Completion{ID: 4 + uint64(i), Op: verbs.OpRecvImm, HasImm: true, Imm: uint32(i), QP: b.qp.Num()}, b.received())
	}
}

// writeImmBeforeReceive posts a WRITE_WITH_IMM to a peer without receives. The completion of the
// receive comes behind the data.
func writeImmBeforeReceive(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	fill(a.bytes(0, 777), 1)
	a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpWriteImm, Imm: 9, Flags: verbs.Signaled, Local: segs(a.at(0, 777)), Remote: b.mr.Remote(5)})
	b.postRecv(verbs.RecvRequest{ID: 2})
	wc := b.received()
	require.Equal(t, uint32(9), wc.Imm)
	require.Equal(t, pattern(777, 1), b.bytes(5, 777))
	require.Equal(t, uint64(1), a.sent().ID)
}

func receiveInInit(t *testing.T, h Harness) {
	a, b := newStrangers(t, h)
	require.NoError(t, b.qp.Modify(testwatch.Context(t), verbs.StateInit, verbs.Attr{}))
	b.postRecv(verbs.RecvRequest{ID: 3, Local: segs(b.at(0, 8))})
	connect(t, a.qp, b.qp)
	a.do(verbs.WorkRequest{Op: verbs.OpSend, Local: segs(a.at(0, 8))})
	require.Equal(t, uint64(3), b.received().ID)
}

// cancelSend cancels a send that waits. The caller may change the source as soon as Cancel has
// returned, and the send completes once, in any way.
func cancelSend(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	fill(a.bytes(0, 64), 1)
	a.post(verbs.WorkRequest{ID: 21, Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 64))})
	if !a.qp.Cancel(21) {
		t.Skip("the provider cannot cancel one request")
	}
	clear(a.bytes(0, 64)) // the memory is ours again
	wc := a.sent()
	require.Equal(t, uint64(21), wc.ID)
	require.Contains(t, []verbs.Status{verbs.Canceled, verbs.Success, verbs.Flushed}, wc.Status)
	a.qp.Cancel(4711) // unknown: ignored
	require.NoError(t, b.ctx.Close())
}

// behindCanceledSend cancels a SEND that waits for a receive. The WRITE behind it
// needs nothing of the peer, which has no news either.
func behindCanceledSend(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	a.flush(b)
	fill(a.bytes(0, 64), 1)
	a.post(verbs.WorkRequest{ID: 21, Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 64))},
		verbs.WorkRequest{ID: 22, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 64)), Remote: b.mr.Remote(0)})
	if !a.qp.Cancel(21) {
		t.Skip("the provider cannot cancel one request")
	}
	statuses := map[uint64]verbs.Status{}
	for range 2 {
		wc := a.sent()
		statuses[wc.ID] = wc.Status
	}
	require.Equal(t, map[uint64]verbs.Status{21: verbs.Canceled, 22: verbs.Success}, statuses)
	require.Equal(t, pattern(64, 1), b.bytes(0, 64))
}
