//go:build ibverbs

package ibv

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/roce/peer"
	"github.com/gopgas/gopgas/internal/tools/roce/wire"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Each connection begins with another random packet number, so a test makes several.
const connections = 8

func TestResponsesFromBeforeResetCompleteNoRequest(t *testing.T) {
	port := newPeer(t)
	for _, op := range []driver.Opcode{driver.OpWrite, driver.OpRead, driver.OpFetchAdd} {
		t.Run(op.String(), func(t *testing.T) {
			a, p := newEnd(t, onWire), port.New(pattern(3))
			a.meet(p, requestPSN)
			for range connections {
				a.exchange(p)
				a.modify(driver.StateReset)
				stale := p.Sent()
				p.Behave(peer.Conduct{Silent: true})
				before, seen := applied(op, p), p.Counts().Requests
				a.meet(p, requestPSN)
				mine, theirs := a.request(p, op)
				require.NoError(t, p.Await(testwatch.Context(t), func(c peer.Counts) bool { return c.Requests > seen }))
				require.NoError(t, p.Send(stale...))
				p.Behave(peer.Conduct{}) // the device repeats the request
				a.concludes(op, succeeds)
				require.Equal(t, before+1, applied(op, p), "the completion precedes the request's effect")
				effect(op, succeeds, mine, theirs)
				require.Equal(t, mine, a.mem)
				require.Equal(t, theirs, p.Memory())
			}
		})
	}
}

// fetchAdd is a request packet that adds 1 to the first word of e.
func (e *end) fetchAdd(psn uint32) wire.Packet {
	return wire.Packet{Op: wire.FetchAdd, PSN: psn, AckRequest: true, Addr: e.mr.Addr(), RKey: uint32(e.mr.RKey().Lo), Swap: 1}
}

// write is a request packet that writes 8 bytes to the second word of e.
func (e *end) write(psn uint32, word uint64) wire.Packet {
	return wire.Packet{Op: wire.WriteOnly, PSN: psn, AckRequest: true, Addr: e.mr.Addr() + 8, RKey: uint32(e.mr.RKey().Lo), Length: 8,
		Payload: binary.NativeEndian.AppendUint64(nil, word)}
}

// words returns the words that both requests change.
func (e *end) words() [2]uint64 {
	return [2]uint64{binary.NativeEndian.Uint64(e.mem), binary.NativeEndian.Uint64(e.mem[8:])}
}

// request sends requests of the endpoint and waits for n responses.
func request(t *testing.T, p *peer.Endpoint, n int, requests ...wire.Packet) []wire.Packet {
	t.Helper()
	seen := p.Counts().Responses
	require.NoError(t, p.Send(requests...))
	require.NoError(t, p.Await(testwatch.Context(t), func(c peer.Counts) bool { return c.Responses >= seen+n }))
	return p.Responses()[seen:]
}

func TestRepeatedRequestsOfPeerTakeEffectOnce(t *testing.T) {
	port := newPeer(t)
	a, p := newEnd(t, onWire), port.New(pattern(3))
	a.meet(p, requestPSN)
	const psn = requestPSN
	responses := request(t, p, 2, a.fetchAdd(psn), a.fetchAdd(psn))
	for _, response := range responses {
		require.Equal(t, [3]any{wire.AtomicAcknowledge, uint32(psn), uint64(0)}, [3]any{response.Op, response.PSN, response.Old})
	}
	request(t, p, 2, a.write(psn+1, 7), a.write(psn+1, 8))
	require.Equal(t, [2]uint64{1, 7}, a.words())
	a.exchange(p)
}

func TestRequestsFromBeforeResetChangeNothing(t *testing.T) {
	port := newPeer(t)
	a, p := newEnd(t, onWire), port.New(pattern(3))
	a.meet(p, requestPSN)
	const distance = 0x100000
	for name, psn := range map[string]uint32{"behind": requestPSN + distance, "ahead": requestPSN - distance} {
		clear(a.mem)
		a.modify(driver.StateReset)
		a.meet(p, psn)
		require.NoError(t, p.Send(a.fetchAdd(requestPSN), a.write(requestPSN, 7), a.fetchAdd(requestPSN+1)), name)
		require.NoError(t, p.Send(a.fetchAdd(psn)))
		var response wire.Packet
		require.NoError(t, p.Await(testwatch.Context(t), func(peer.Counts) bool {
			all := p.Responses()
			i := slices.IndexFunc(all, func(a wire.Packet) bool { return a.Op == wire.AtomicAcknowledge && a.PSN == psn })
			if i >= 0 {
				response = all[i]
			}
			return i >= 0
		}))
		require.Zero(t, response.Old, name)
		require.Equal(t, [2]uint64{1, 0}, a.words(), name)
		a.exchange(p)
	}
}
