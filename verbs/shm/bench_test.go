//go:build linux

package shm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// BenchmarkPostAndPoll measures the cost of the queue on top of the copy.
func BenchmarkPostAndPoll(b *testing.B) {
	for _, n := range []int{8, 4096, 64 << 10} {
		for _, op := range []driver.Opcode{driver.OpWrite, driver.OpRead} {
			b.Run(fmt.Sprint(op, " ", n), func(b *testing.B) {
				x, y := newPair(b, sideConfig{})
				loop(b, x, driver.WorkRequest{Op: op, Local: segments(pattern(n, 1)), Remote: y.at(0)}, n)
			})
		}
	}
	b.Run("FETCH_ADD", func(b *testing.B) {
		x, y := newPair(b, sideConfig{})
		loop(b, x, driver.WorkRequest{Op: driver.OpFetchAdd, Operand: 1, Local: segments(word(0)), Remote: y.at(0)}, 8)
	})
	b.Run("SEND and receive 8", func(b *testing.B) {
		x, y := newPair(b, sideConfig{})
		wrs, recv := []driver.WorkRequest{send(1, word(0))}, []driver.RecvRequest{{Local: segments(word(0))}}
		wc := make([]driver.Completion, 1)
		for b.Loop() {
			_, _ = y.qp.PostRecv(recv)
			_, _ = x.qp.PostSend(wrs)
			_, _ = x.cq.Poll(wc)
			if n, err := y.cq.Poll(wc); n != 1 || err != nil {
				b.Fatal(n, err)
			}
		}
	})
}

func loop(b *testing.B, s *side, wr driver.WorkRequest, bytes int) {
	b.Helper()
	wr.Flags = driver.Signaled
	wrs, wc := []driver.WorkRequest{wr}, make([]driver.Completion, 1)
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := s.qp.PostSend(wrs); n != 1 || err != nil {
			b.Fatal(n, err)
		}
		if n, err := s.cq.Poll(wc); n != 1 || err != nil {
			b.Fatal(n, err)
		}
	}
}

func TestPostPollAndReceiveAllocateNothing(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	requests := map[string]driver.WorkRequest{
		"write":  write(b.at(0), make([]byte, 1000)),
		"read":   read(b.at(0), make([]byte, 1000)),
		"atomic": {Op: driver.OpAtomic, Atomic: driver.AtomicOr, Width: 1, Remote: b.at(1)},
		"send":   send(1, make([]byte, 100)),
		"notice": {Op: driver.OpWriteImm, Local: segments(word(1)), Remote: b.at(0)},
	}
	for name, wr := range requests {
		wr.Flags = driver.Signaled
		wrs, wc := []driver.WorkRequest{wr}, make([]driver.Completion, 4)
		recv := []driver.RecvRequest{{Local: segments(make([]byte, 100))}}
		two := wr.Op == driver.OpSend || wr.Op == driver.OpWriteImm
		failed := false
		once := func() {
			if two {
				_, _ = b.qp.PostRecv(recv)
			}
			_, _ = a.qp.PostSend(wrs)
			n, _ := a.cq.Poll(wc)
			failed = failed || n != 1 || wc[0].Status != driver.Success
			if two {
				n, _ = b.cq.Poll(wc)
				failed = failed || n != 1
			}
		}
		for range 40 {
			once()
		}
		require.Zero(t, testing.AllocsPerRun(200, once), name)
		require.False(t, failed, name)
	}
}

func TestQueuedRequestAllocatesNothingInUsedEntry(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	wrs := []driver.WorkRequest{send(1, make([]byte, 100))}
	wrs[0].Flags |= driver.Inline
	recv, wc := []driver.RecvRequest{{Local: segments(make([]byte, 100))}}, make([]driver.Completion, 4)
	once := func() {
		_, _ = a.qp.PostSend(wrs)
		_, _ = b.qp.PostRecv(recv)
		for got := 0; got < 2; {
			n, _ := a.cq.Poll(wc)
			m, _ := b.cq.Poll(wc)
			got += n + m
		}
	}
	for range 40 {
		once()
	}
	require.Zero(t, testing.AllocsPerRun(100, once))
}
