//go:build linux

package shm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
)

func TestSendFillsThePostedReceivesInOrder(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	bufs := make([][]byte, 10)
	for i := range bufs {
		bufs[i] = make([]byte, 100)
		b.recv(uint64(i), bufs[i][:50], bufs[i][50:])
	}
	for i := range bufs {
		a.post(send(uint64(i), pattern(10*i, i)))
	}
	for i := range bufs {
		wc := b.next()
		require.Equal(t, driver.Completion{ID: uint64(i), Op: driver.OpRecv, Bytes: 10 * i, QP: b.qp.Num()}, wc)
		require.Equal(t, pattern(10*i, i), bufs[i][:10*i])
		wc = a.next()
		require.Equal(t, driver.Completion{ID: uint64(i), Op: driver.OpSend, QP: a.qp.Num()}, wc)
	}
}

func TestSendWithoutReceiveDelaysLaterRequests(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	w := write(b.at(0), word(5))
	w.ID, w.Flags = 2, driver.Signaled
	a.post(send(1, []byte("hello")), w)
	a.nothing()
	require.Equal(t, word(0), b.arena.Bytes()[:8], "the write waits behind the send")
	buf := make([]byte, 5)
	b.recv(7, buf)
	require.EqualValues(t, 1, a.next().ID)
	require.EqualValues(t, 2, a.next().ID)
	require.Equal(t, word(5), b.arena.Bytes()[:8])
	require.EqualValues(t, 7, b.next().ID)
	require.Equal(t, "hello", string(buf))
}

func TestFullSendQueueRefusesAndTakesAgainLater(t *testing.T) {
	a, b := newPair(t, sideConfig{sendDepth: 4, recvDepth: 4})
	wrs := []driver.WorkRequest{send(0, word(0)), send(1, word(1)), send(2, word(2)), send(3, word(3)), send(4, word(4))}
	n, err := a.qp.PostSend(wrs)
	require.ErrorIs(t, err, driver.ErrQueueFull)
	require.Equal(t, 4, n)
	buf := make([]byte, 8)
	b.recv(0, buf)
	require.EqualValues(t, 0, a.next().ID)
	require.EqualValues(t, 0, b.next().ID)
	a.post(wrs[4])
	for id := uint64(1); id < 5; id++ {
		b.recv(id, buf)
		require.Equal(t, id, a.next().ID)
		require.Equal(t, id, b.next().ID)
		require.Equal(t, word(id), buf)
	}
}

func TestFullReceiveQueueRefuses(t *testing.T) {
	_, b := newPair(t, sideConfig{sendDepth: 4, recvDepth: 3})
	n, err := b.qp.PostRecv(make([]driver.RecvRequest, 5))
	require.ErrorIs(t, err, driver.ErrQueueFull)
	require.Equal(t, 3, n)
}

func TestMessageLargerThanTheRingTravelsInPieces(t *testing.T) {
	for _, n := range []int{4096, 5000, 100_000, 1<<20 + 13} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a, b := newPair(t, sideConfig{provider: shm.Config{RingBytes: 4096}})
			src, dst := pattern(n, 3), make([]byte, n+1)
			b.recv(1, dst[:n/3], dst[n/3:])
			b.recv(2, make([]byte, 8))
			a.post(send(1, src[:n/2], src[n/2:]), send(2, word(1)))
			for done := 0; done < 4; {
				done += poll(t, a) + poll(t, b)
			}
			require.Equal(t, src, dst[:n])
		})
	}
}

// poll counts completions and requires that all are successes.
func poll(t *testing.T, s *side) int {
	t.Helper()
	wc := make([]driver.Completion, 8)
	n, err := s.cq.Poll(wc)
	require.NoError(t, err)
	for _, c := range wc[:n] {
		require.Equal(t, driver.Success, c.Status, "%v", c.Err)
	}
	return n
}

func TestReceiveTooSmallFailsBothSides(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	small := []byte{9, 9, 9, 9}
	b.recv(1, small)
	b.recv(2, make([]byte, 100))
	a.post(send(5, word(1)), send(6, word(2)))
	wc := b.next()
	require.Equal(t, driver.LocalLength, wc.Status)
	require.EqualValues(t, 1, wc.ID)
	require.Equal(t, driver.Flushed, b.next().Status)
	wc = a.next()
	require.Equal(t, driver.RemoteInvalid, wc.Status)
	require.EqualValues(t, 5, wc.ID)
	wc = a.next()
	require.Equal(t, driver.Flushed, wc.Status)
	require.EqualValues(t, 6, wc.ID)
	require.Equal(t, []byte{9, 9, 9, 9}, small)
}

func TestWriteImmIsVisibleWithItsNotice(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	wr := write(b.at(128), pattern(1000, 1))
	wr.Op, wr.Imm, wr.ID, wr.Flags = driver.OpWriteImm, 0xdeadbeef, 4, driver.Signaled
	a.post(wr)
	a.nothing()
	b.recv(6)
	require.EqualValues(t, 4, a.next().ID)
	wc := b.next()
	require.Equal(t, driver.Completion{ID: 6, Op: driver.OpRecvImm, HasImm: true, Imm: 0xdeadbeef, Bytes: 1000, QP: b.qp.Num()}, wc)
	require.Equal(t, pattern(1000, 1), b.arena.Bytes()[128:1128])
}

func TestInlineDataMayBeChangedAfterPosting(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	src := pattern(5000, 1)
	wr := send(1, src[:100], src[100:])
	wr.Flags |= driver.Inline
	a.post(wr) // no receive: it waits
	clear(src)
	dst := make([]byte, 5000)
	b.recv(1, dst)
	require.Equal(t, driver.Success, a.next().Status)
	require.Equal(t, driver.Success, b.next().Status)
	require.Equal(t, pattern(5000, 1), dst)
}

func TestSegmentSlicesMayBeChangedAfterPosting(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	wr := send(1, []byte("right"))
	a.post(wr)
	wr.Local[0].Mem = []byte("wrong")
	dst := make([]byte, 5)
	b.recv(1, dst)
	a.next()
	b.next()
	require.Equal(t, "right", string(dst))
}

func TestCanceledRequestGivesItsMemoryBack(t *testing.T) {
	a, b := newPair(t, sideConfig{provider: shm.Config{RingBytes: 4096}})
	src, dst := pattern(20_000, 1), make([]byte, 20_000)
	b.recv(1, dst)
	a.post(send(1, src), send(2, word(7)), send(3, word(8)))
	canceler := a.qp.(driver.Canceler)
	canceler.Cancel(1) // has begun: the remaining bytes are copied
	canceler.Cancel(2) // has not begun and never will
	canceler.Cancel(2)
	canceler.Cancel(77)
	for _, id := range []uint64{1, 2} {
		wc := a.next()
		require.Equal(t, id, wc.ID)
		require.Equal(t, driver.Canceled, wc.Status)
	}
	clear(src)
	small := make([]byte, 8)
	b.recv(2, small)
	for got := 0; got < 3; {
		got += poll(t, a) + poll(t, b)
	}
	a.nothing()
	b.nothing()
	require.Equal(t, pattern(20_000, 1), dst)
	require.Equal(t, word(8), small)
}
