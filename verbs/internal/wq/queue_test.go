package wq

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func segments(mem ...[]byte) (all []driver.Segment) {
	for _, m := range mem {
		all = append(all, driver.Segment{Mem: m})
	}
	return all
}

func post(t *testing.T, q *SendQueue, wr driver.WorkRequest) *Request {
	t.Helper()
	r, err := q.Push(&wr)
	require.NoError(t, err)
	return r
}

func TestPushCopiesSegmentsAndTheBytesOfInlineRequests(t *testing.T) {
	q := NewSendQueue(2)
	here, inline := []byte("here"), []byte("inline")
	wr := driver.WorkRequest{ID: 1, Local: segments(here)}
	stays := post(t, &q, wr)
	wr.Local[0].Mem = nil
	copied := post(t, &q, driver.WorkRequest{ID: 2, Flags: driver.Inline, Local: segments(inline[:2], nil, inline[2:])})
	here[0], inline[0] = 'H', 'I'
	require.Equal(t, segments([]byte("Here")), stays.Local)
	require.Equal(t, segments([]byte("inline")), copied.Local)
	_, err := q.Push(&wr)
	require.ErrorIs(t, err, driver.ErrQueueFull)
}

func TestPopForgetsTheMemoryOfTheRequest(t *testing.T) {
	q := NewSendQueue(1)
	r := post(t, &q, driver.WorkRequest{Local: segments(make([]byte, 8), make([]byte, 8))})
	local := r.Local
	q.Pop()
	require.Equal(t, make([]driver.Segment, 2), local)
	r = post(t, &q, driver.WorkRequest{Flags: driver.Inline, Local: segments(make([]byte, keepCopied+1))})
	q.Pop()
	require.Nil(t, r.copied, "large buffers are not kept")
	r = post(t, &q, driver.WorkRequest{Flags: driver.Inline, Local: segments(make([]byte, keepCopied))})
	q.Clear()
	require.NotNil(t, r.copied)
	require.Zero(t, r.Sent)
}

func TestCancelRemovesQueuedRequestsAndCopiesStartedOnes(t *testing.T) {
	mem := []byte{1, 2, 3, 4, 5}
	q := NewSendQueue(8)
	for i := range uint64(5) {
		post(t, &q, driver.WorkRequest{ID: i, Op: driver.OpSend, Local: segments(mem[i : i+1])})
	}
	q.At(1).Sent = 1
	q.At(3).Op, q.At(3).Flags = driver.OpWrite, driver.Announced
	for _, id := range []uint64{1, 2, 3, 0} {
		op, ok := q.Cancel(id)
		require.True(t, ok)
		require.Equal(t, id == 3, op == driver.OpWrite)
		_, again := q.Cancel(id)
		require.False(t, again, "it was canceled already, or has left")
	}
	_, ok := q.Cancel(99)
	require.False(t, ok)
	clear(mem[:4])
	require.Equal(t, 3, q.Len())
	for i, want := range []struct {
		id       uint64
		canceled bool
	}{{1, true}, {3, true}, {4, false}} {
		r := q.At(i)
		require.Equal(t, want.id, r.ID)
		require.Equal(t, want.canceled, r.Canceled)
		require.Equal(t, segments([]byte{byte(want.id + 1)}), r.Local)
	}
}

func TestFlushGivesTheCauseToTheOldestRequestOnly(t *testing.T) {
	cause := errors.New("the cause")
	ended := func(id uint64, status driver.Status, err error) driver.Completion {
		return driver.Completion{ID: id, Op: driver.OpWrite, Status: status, Err: err}
	}
	for _, c := range []struct {
		name     string
		canceled bool // the oldest request
		status   driver.Status
		want     []driver.Completion
	}{
		{"refused", false, driver.RemoteAccess, []driver.Completion{ended(0, driver.RemoteAccess, cause), ended(1, driver.Flushed, nil), ended(2, driver.Flushed, nil)}},
		{"lost", false, driver.RetryExceeded, []driver.Completion{ended(0, driver.RetryExceeded, cause), ended(1, driver.Flushed, nil), ended(2, driver.Flushed, nil)}},
		{"refused after it was canceled", true, driver.RemoteAccess, []driver.Completion{ended(1, driver.Flushed, nil), ended(2, driver.Flushed, nil)}},
		{"lost after it was canceled", true, driver.RetryExceeded, []driver.Completion{ended(1, driver.RetryExceeded, cause), ended(2, driver.Flushed, nil)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := NewSendQueue(3)
			for i := range uint64(3) {
				post(t, &q, driver.WorkRequest{ID: i, Op: driver.OpWrite})
			}
			q.First().Canceled = c.canceled
			var got []driver.Completion
			q.Flush(c.status, cause, func(wc driver.Completion) { got = append(got, wc) })
			require.Equal(t, c.want, got)
			require.Zero(t, q.Len())
		})
	}
}

func TestReceivesKeepOrderAndForgetMemory(t *testing.T) {
	q := NewRecvQueue(3, 1)
	mem := make([]byte, 8)
	for lap := range uint64(5) {
		for i := range uint64(3) {
			require.NoError(t, q.Push(&driver.RecvRequest{ID: 3*lap + i, Local: segments(mem, mem)}), "more segments than announced")
		}
		require.ErrorIs(t, q.Push(&driver.RecvRequest{}), driver.ErrQueueFull)
		require.True(t, q.Cancel(3*lap+1))
		require.False(t, q.Cancel(3*lap+1))
		require.Equal(t, 3*lap, q.First().ID)
		local := q.First().Local
		q.Pop()
		require.Equal(t, make([]driver.Segment, 2), local)
		var got []driver.Completion
		q.Flush(func(wc driver.Completion) { got = append(got, wc) })
		require.Equal(t, []driver.Completion{{ID: 3*lap + 2, Status: driver.Flushed, Op: driver.OpRecv}}, got)
	}
	require.NoError(t, q.Push(&driver.RecvRequest{}))
	q.Clear()
	require.Nil(t, q.First())
}

func TestReceivesAllocateAtTheirFirstUseOnly(t *testing.T) {
	q := NewRecvQueue(16, 2)
	wr := driver.RecvRequest{Local: segments(make([]byte, 1), make([]byte, 1))}
	require.Zero(t, testing.AllocsPerRun(20, func() {
		for range 16 {
			_ = q.Push(&wr)
		}
		q.Clear()
	}))
}

func TestGatherAndScatterSkipTheirFirstBytes(t *testing.T) {
	src := []byte("0123456789")
	for skip := range 11 {
		for _, cut := range []int{0, 1, 4, 10} {
			dst, back := make([]byte, 10-skip), []byte("..........")
			Gather(dst, segments(src[:cut], nil, src[cut:]), skip)
			require.Equal(t, src[skip:], dst)
			Scatter(segments(nil, back[:cut], back[cut:]), skip, dst)
			require.Equal(t, ".........."[:skip]+string(src[skip:]), string(back))
		}
	}
	require.Equal(t, 10, Length(segments(src[:3], nil, src[3:])))
}

func TestFetchAddAndCmpSwapAreAtomicsOfEightBytes(t *testing.T) {
	for _, c := range []struct {
		wr    driver.WorkRequest
		op    driver.AtomicOp
		width int
	}{
		{driver.WorkRequest{Op: driver.OpFetchAdd}, driver.AtomicAdd, 8},
		{driver.WorkRequest{Op: driver.OpCmpSwap}, driver.AtomicCmpSwap, 8},
		{driver.WorkRequest{Op: driver.OpAtomic, Atomic: driver.AtomicXor, Width: 2}, driver.AtomicXor, 2},
	} {
		op, width := Atomic(&c.wr)
		require.Equal(t, c.op, op)
		require.Equal(t, c.width, width)
	}
}
