//go:build linux

package tcp

import (
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// victim has two regions in one piece of memory, with guards around them: one
// for everything, one that may only be read.
type victim struct {
	*node
	q         *qp
	all       []byte
	open, ro  driver.MR
	peer      *impostor
	untouched []byte
}

func newVictim(t *testing.T) *victim {
	v := &victim{node: newNode(t, 8, 0), all: alignedBytes(512)}
	var err error
	v.open, err = v.RegMR(t.Context(), driver.Memory{Bytes: v.all[128:192]}, driver.AllAccess)
	require.NoError(t, err)
	v.ro, err = v.RegMR(t.Context(), driver.Memory{Bytes: v.all[256:320]}, driver.RemoteRead)
	require.NoError(t, err)
	v.q, v.untouched = v.newQP(4), bytes.Clone(v.all)
	v.peer = authenticate(t, v.node, v.q)
	return v
}

// nak reads frames up to a NAK.
func (i *impostor) nak() driver.Status {
	i.t.Helper()
	for {
		f, _ := i.hears()
		_, err := io.ReadFull(i.conn, make([]byte, f.bodySize))
		require.NoError(i.t, err)
		if f.kind == kindNak {
			return driver.Status(f.op)
		}
	}
}

func TestForgedRequestsAreRefused(t *testing.T) {
	type request struct {
		frame  func(v *victim) frame
		status driver.Status
	}
	write := func(f func(v *victim, f *frame)) func(*victim) frame {
		return func(v *victim) frame {
			w := frame{kind: kindWrite, flags: flagLast, length: 16, addr: v.open.Addr(), key: v.open.RKey()}
			f(v, &w)
			return w
		}
	}
	for name, c := range map[string]request{
		"guessed key":                   {write(func(_ *victim, f *frame) { f.key.Lo++ }), driver.RemoteAccess},
		"zero key":                      {write(func(_ *victim, f *frame) { f.key = driver.Key{} }), driver.RemoteAccess},
		"before the region":             {write(func(_ *victim, f *frame) { f.addr-- }), driver.RemoteAccess},
		"beyond the region":             {write(func(_ *victim, f *frame) { f.addr += 49 }), driver.RemoteAccess},
		"far beyond":                    {write(func(_ *victim, f *frame) { f.addr += 1 << 40 }), driver.RemoteAccess},
		"around the end":                {write(func(_ *victim, f *frame) { f.addr = math.MaxUint64 - 7 }), driver.RemoteAccess},
		"longer than region":            {write(func(_ *victim, f *frame) { f.length = 65 }), driver.RemoteAccess},
		"short, guessed key":            {write(func(_ *victim, f *frame) { f.length, f.key.Hi = 8, 7 }), driver.RemoteAccess},
		"read-only":                     {write(func(v *victim, f *frame) { f.key, f.addr = v.ro.RKey(), v.ro.Addr() }), driver.RemoteAccess},
		"atomic on read-only":           {write(func(v *victim, f *frame) { *f = atomicFrame(v.ro, 1, 8, 0) }), driver.RemoteAccess},
		"misaligned atomic":             {write(func(v *victim, f *frame) { *f = atomicFrame(v.open, 1, 8, 4) }), driver.RemoteInvalid},
		"unknown atomic":                {write(func(v *victim, f *frame) { *f = atomicFrame(v.open, 99, 8, 0) }), driver.RemoteInvalid},
		"odd width":                     {write(func(v *victim, f *frame) { *f = atomicFrame(v.open, 1, 3, 0) }), driver.RemoteInvalid},
		"width of a pair":               {write(func(v *victim, f *frame) { *f = atomicFrame(v.open, uint8(driver.AtomicSwap), 16, 0) }), driver.RemoteInvalid},
		"huge width":                    {write(func(v *victim, f *frame) { *f = atomicFrame(v.open, 1, 255, 0) }), driver.RemoteInvalid},
		"atomic at the end":             {write(func(v *victim, f *frame) { *f = atomicFrame(v.open, 1, 8, 64) }), driver.RemoteAccess},
		"accumulate on read-only":       {write(func(v *victim, f *frame) { *f = accumulateFrame(v.ro, driver.AtomicAdd, 8, 0, 16) }), driver.RemoteAccess},
		"accumulate beyond":             {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, driver.AtomicAdd, 8, 56, 16) }), driver.RemoteAccess},
		"misaligned accumulate":         {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, driver.AtomicAdd, 8, 4, 16) }), driver.RemoteInvalid},
		"accumulate of half a word":     {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, driver.AtomicAdd, 8, 0, 12) }), driver.RemoteInvalid},
		"accumulate of nothing":         {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, driver.AtomicAdd, 8, 0, 0) }), driver.RemoteInvalid},
		"accumulate of no width":        {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, driver.AtomicAdd, 0, 0, 16) }), driver.RemoteInvalid},
		"accumulate by compare":         {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, driver.AtomicCmpSwap, 8, 0, 16) }), driver.RemoteInvalid},
		"accumulate by nothing known":   {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, 99, 8, 0, 16) }), driver.RemoteInvalid},
		"longest accumulate, no region": {write(func(v *victim, f *frame) { *f = accumulateFrame(v.open, driver.AtomicSwap, 1, 0, driver.MaxAccumulate) }), driver.RemoteAccess},
		"blocks on read-only":           {write(func(v *victim, f *frame) { *f = blocksFrame(kindWriteBlocks, v.ro, 20) }), driver.RemoteInvalid},
		"blocks of huge runs":           {write(func(v *victim, f *frame) { *f = blocksFrame(kindWriteBlocks, v.open, 20) }), driver.RemoteInvalid},
		"read of huge blocks":           {write(func(v *victim, f *frame) { *f = blocksFrame(kindReadBlocks, v.open, 20) }), driver.RemoteInvalid},
		"read beyond": {write(func(v *victim, f *frame) {
			*f = frame{kind: kindRead, flags: flagLast, length: maxMessage, addr: v.ro.Addr(), key: v.ro.RKey()}
		}), driver.RemoteAccess},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVictim(t)
			f := c.frame(v)
			var body []byte
			if f.kind != kindRead { // a READ has none, and may request a gigabyte
				body = bytes.Repeat([]byte{0xff}, int(f.length))
			}
			v.peer.frame(f, body...)
			require.Equal(t, c.status, v.peer.nak())
			require.Equal(t, driver.EventQPFatal, v.event().Kind)
			require.Equal(t, driver.StateErr, v.q.currentState())
			require.Equal(t, v.untouched, v.all)
		})
	}
}

func atomicFrame(mr driver.MR, op, width uint8, off uint64) frame {
	return frame{kind: kindAtomic, flags: flagLast | flagReply, op: op, width: width, operand: math.MaxUint64, addr: mr.Addr() + off, key: mr.RKey()}
}

func accumulateFrame(mr driver.MR, op driver.AtomicOp, width uint8, off uint64, n uint32) frame {
	return frame{kind: kindAccumulate, flags: flagLast | flagReply, op: uint8(op), width: width, length: n, bytes: n,
		addr: mr.Addr() + off, key: mr.RKey()}
}

// blocksFrame is the header of one run.
func blocksFrame(k kind, mr driver.MR, bytes uint32) frame {
	f := frame{kind: k, flags: flagLast, runs: 1, bytes: bytes, length: driver.RunSize, addr: mr.Addr(), key: mr.RKey()}
	if k == kindWriteBlocks {
		f.length += bytes
	}
	return f
}

func TestBrokenProtocolEndsTheConnection(t *testing.T) {
	for name, frames := range map[string][]frame{
		"unknown kind":               {},
		"SEND without a receive":     {{kind: kindSend, flags: flagLast}},
		"immediate without one":      {{kind: kindWriteImm, flags: flagLast}},
		"data for no READ":           {{kind: kindData, flags: flagLast, length: 8}},
		"accumulate within a write":  {{kind: kindWrite}, {kind: kindAccumulate, flags: flagLast}},
		"value for no atomic":        {{kind: kindValue, flags: flagLast}},
		"ACK of the future":          {{kind: kindAck, seq: 1}},
		"NAK of nothing":             {{kind: kindNak, op: uint8(driver.RemoteAccess)}},
		"NAK that is a success":      {{kind: kindNak}},
		"credits taken back":         {{kind: kindAck, credits: 5}, {kind: kindAck, credits: 4}},
		"abort of nothing":           {{kind: kindAbort, flags: flagLast}},
		"request inside another one": {{kind: kindWrite}, {kind: kindRead, flags: flagLast}},
		"payload too long":           {{kind: kindWrite, length: maxPayload + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVictim(t)
			if len(frames) == 0 {
				v.peer.send(make([]byte, 8))
			}
			for _, f := range frames {
				v.peer.frame(f, make([]byte, min(f.length, 8))...)
			}
			v.peer.hangsUp()
			require.ErrorIs(t, v.event().Err, errProtocol)
			require.Equal(t, driver.StateErr, v.q.currentState())
			require.Equal(t, v.untouched, v.all)
		})
	}
}

func TestTooManyReadsEndTheConnection(t *testing.T) {
	v := newVictim(t)
	v.q.lock() // so that all requests arrive before any response
	var all []byte
	for range 200 {
		b := make([]byte, headerSizes[kindRead])
		(&frame{kind: kindRead, flags: flagLast, length: 1, addr: v.ro.Addr(), key: v.ro.RKey()}).encode(b)
		all = append(all, b...)
	}
	require.ErrorIs(t, v.q.link.process(all), errProtocol)
	v.q.unlock()
}

func TestTruncatedFrameIsAnError(t *testing.T) {
	v := newVictim(t)
	post(t, v.q, driver.WorkRequest{ID: 1, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(make([]byte, 8))},
		driver.WorkRequest{ID: 2, Op: driver.OpWrite})
	v.peer.send([]byte{byte(kindWrite), 0, 0})
	require.NoError(t, v.peer.conn.Close())
	first, second := v.next(), v.next()
	require.Equal(t, driver.RetryExceeded, first.Status)
	require.ErrorIs(t, first.Err, driver.ErrLost)
	require.Equal(t, driver.Flushed, second.Status)
	require.ErrorIs(t, v.event().Err, driver.ErrLost)
}

// TestFramesSentBytewiseAreApplied sends frames one byte at a time.
func TestFramesSentBytewiseAreApplied(t *testing.T) {
	v := newVictim(t)
	body := []byte("0123456789abcdef")
	f := frame{kind: kindWrite, flags: flagLast | flagWantAck, length: 16, addr: v.open.Addr(), key: v.open.RKey()}
	b := make([]byte, headerSizes[kindWrite])
	f.encode(b)
	word := frame{kind: kindWrite, flags: flagLast | flagWantAck, length: 8, addr: v.open.Addr() + 16, key: v.open.RKey()}
	w := make([]byte, headerSizes[kindWrite])
	word.encode(w)
	stream := append(append(append(b, body...), w...), "ABCDEFGH"...)
	for i := range stream {
		v.peer.send(stream[i : i+1])
	}
	eventually(t, "both writes", func() bool {
		v.q.lock()
		defer v.q.unlock()
		return v.q.done == 2
	})
	require.Equal(t, "0123456789abcdefABCDEFGH", string(v.all[128:152]))
}

func TestResetByPeerEndsOutstandingRequests(t *testing.T) {
	v := newVictim(t)
	post(t, v.q, driver.WorkRequest{ID: 1, Op: driver.OpSend})
	require.NoError(t, v.peer.conn.(interface{ SetLinger(int) error }).SetLinger(0))
	require.NoError(t, v.peer.conn.Close())
	require.Equal(t, driver.RetryExceeded, v.next().Status)
	require.Equal(t, driver.EventQPFatal, v.event().Kind)
}
