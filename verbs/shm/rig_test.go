//go:build linux

package shm_test

import (
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
)

// side is one end of a connection: a device and a rank's objects on it.
type side struct {
	t      testing.TB
	device driver.Context
	cq     driver.CQ
	qp     driver.QP
	arena  *memory.Memfd
	mr     driver.MR
	bell   *wait.Bell // nil unless shared
}

type sideConfig struct {
	provider             shm.Config
	opts                 driver.Options
	sendDepth, recvDepth int
	arena                int64
	shared               bool // bring a bell at the start of the arena
}

func newSide(t testing.TB, cfg sideConfig) *side {
	t.Helper()
	ctx := context.Background()
	if cfg.sendDepth == 0 {
		cfg.sendDepth, cfg.recvDepth = 16, 16
	}
	if cfg.arena == 0 {
		cfg.arena = 1 << 20
	}
	s := &side{t: t}
	var err error
	s.arena, err = memory.NewMemfd("arena", cfg.arena)
	require.NoError(t, err)
	if cfg.shared {
		s.bell = wait.NewShared(s.arena.Bytes()[bellAt:bellAt+wait.Size], s.arena.FD(), bellAt)
		cfg.opts.Bell = s.bell
	}
	s.device, err = shm.New(cfg.provider).Open(ctx, "", cfg.opts)
	require.NoError(t, err)
	s.mr, err = s.device.RegMR(ctx, s.arena.Memory(0, cfg.arena), driver.AllAccess)
	require.NoError(t, err)
	s.cq, err = s.device.CreateCQ(ctx, 256)
	require.NoError(t, err)
	s.qp, err = s.device.CreateQP(ctx, driver.QPConfig{SendCQ: s.cq, RecvCQ: s.cq,
		SendDepth: cfg.sendDepth, RecvDepth: cfg.recvDepth, MaxSegments: 4})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.device.Close())
		require.NoError(t, s.arena.Close())
	})
	return s
}

// newPair returns two connected sides in RTS.
func newPair(t testing.TB, cfg sideConfig) (a, b *side) {
	t.Helper()
	a, b = newSide(t, cfg), newSide(t, cfg)
	a.connect(b.qp.Address())
	b.connect(a.qp.Address())
	return a, b
}

func (s *side) modify(to driver.State, peer []byte) {
	s.t.Helper()
	require.NoError(s.t, s.qp.Modify(context.Background(), to, driver.Attr{Peer: peer}))
}

func (s *side) connect(peer []byte) {
	s.t.Helper()
	s.modify(driver.StateInit, nil)
	s.modify(driver.StateRTR, peer)
	s.modify(driver.StateRTS, nil)
}

func (s *side) post(wrs ...driver.WorkRequest) {
	s.t.Helper()
	n, err := s.qp.PostSend(wrs)
	require.NoError(s.t, err)
	require.Equal(s.t, len(wrs), n)
}

func (s *side) recv(id uint64, mem ...[]byte) {
	s.t.Helper()
	n, err := s.qp.PostRecv([]driver.RecvRequest{{ID: id, Local: segments(mem...)}})
	require.NoError(s.t, err)
	require.Equal(s.t, 1, n)
}

// next waits for one completion.
func (s *side) next() driver.Completion {
	s.t.Helper()
	wc := make([]driver.Completion, 1)
	ctx, stop := testwatch.With(context.Background())
	defer stop()
	for {
		n, err := s.cq.Poll(wc)
		require.NoError(s.t, err)
		if n == 1 {
			require.Equal(s.t, s.qp.Num(), wc[0].QP)
			return wc[0]
		}
		require.NoError(s.t, s.cq.Wait(ctx), "no completion came")
	}
}

// nothing asserts that there is no completion.
func (s *side) nothing() {
	s.t.Helper()
	n, err := s.cq.Poll(make([]driver.Completion, 4))
	require.NoError(s.t, err)
	require.Zero(s.t, n)
}

// do posts wr signaled and expects success.
func (s *side) do(wr driver.WorkRequest) driver.Completion {
	s.t.Helper()
	wr.ID, wr.Flags = 99, wr.Flags|driver.Signaled
	s.post(wr)
	wc := s.next()
	require.Equal(s.t, driver.Success, wc.Status, "%v", wc.Err)
	require.Equal(s.t, wr.ID, wc.ID)
	require.Equal(s.t, wr.Op, wc.Op)
	return wc
}

func (s *side) at(offset uint64) driver.RemoteAddr {
	return driver.RemoteAddr{Addr: s.mr.Addr() + offset, RKey: s.mr.RKey()}
}

func segments(mem ...[]byte) []driver.Segment {
	var s []driver.Segment
	for _, m := range mem {
		s = append(s, driver.Segment{Mem: m})
	}
	return s
}

func write(to driver.RemoteAddr, mem ...[]byte) driver.WorkRequest {
	return driver.WorkRequest{Op: driver.OpWrite, Local: segments(mem...), Remote: to}
}

func read(from driver.RemoteAddr, mem ...[]byte) driver.WorkRequest {
	return driver.WorkRequest{Op: driver.OpRead, Local: segments(mem...), Remote: from}
}

func send(id uint64, mem ...[]byte) driver.WorkRequest {
	return driver.WorkRequest{ID: id, Op: driver.OpSend, Flags: driver.Signaled, Local: segments(mem...)}
}

func word(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

// pattern returns n bytes that differ from each other and between seeds.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

var page = os.Getpagesize()
