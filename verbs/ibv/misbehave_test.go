//go:build ibverbs

package ibv

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/roce/peer"
	"github.com/gopgas/gopgas/internal/tools/roce/wire"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An ending is how a request ends at a peer that departs from the protocol.
type ending struct {
	status  driver.Status
	cause   error
	applied int // times, by the peer
}

var (
	succeeds = ending{status: driver.Success, applied: 1}
	isLost   = ending{status: driver.RetryExceeded, cause: driver.ErrLost}
)

// conducts are departures of the peer, how requests end, and how operations end that end
// otherwise.
var conducts = []struct {
	name string
	peer.Conduct
	ending
	except map[driver.Opcode]ending
}{
	{"right", peer.Conduct{}, succeeds, nil},
	{"lost response", peer.Conduct{Lose: 1}, succeeds, nil},
	{"lost responses", peer.Conduct{Lose: peer.Always}, ending{driver.RetryExceeded, driver.ErrLost, 1}, nil},
	{"repeated responses", peer.Conduct{Repeat: 3}, succeeds, nil},
	{"silence", peer.Conduct{Silent: true}, isLost, nil},
	{"NAK 0x60", peer.Conduct{Refuse: wire.NakSequence}, isLost, nil},
	{"NAK 0x61", peer.Conduct{Refuse: wire.NakInvalid}, ending{driver.RemoteInvalid, driver.ErrInvalid, 0}, nil},
	{"NAK 0x62", peer.Conduct{Refuse: wire.NakAccess}, ending{driver.RemoteAccess, driver.ErrAccess, 0}, nil},
	{"NAK 0x63", peer.Conduct{Refuse: wire.NakOperation}, ending{driver.RemoteOperation, driver.ErrLost, 0},
		map[driver.Opcode]ending{driver.OpSend: {driver.RemoteInvalid, driver.ErrInvalid, 0}}},
	{"RNR NAKs", peer.Conduct{Refuse: wire.RNR | 12}, isLost,
		map[driver.Opcode]ending{driver.OpSend: {driver.Flushed, nil, 0}}},
}

func TestMisbehavingPeerEndsOnlyItsOwnConnection(t *testing.T) {
	port := newPeer(t)
	for _, c := range conducts {
		for _, op := range []driver.Opcode{driver.OpWrite, driver.OpRead, driver.OpFetchAdd, driver.OpSend} {
			t.Run(c.name+"/"+op.String(), func(t *testing.T) {
				want, ok := c.except[op]
				if !ok {
					want = c.ending
				}
				cfg := onWire
				if want.status == driver.RetryExceeded { // the case takes this time
					cfg.PeerTimeout = time.Second
				}
				a, p := newEnd(t, cfg), port.New(pattern(11))
				other, right := newNeighbor(a), port.New(pattern(5))
				a.meet(p, requestPSN)
				other.meet(right, requestPSN)

				p.Behave(c.Conduct)
				mine, theirs := a.request(p, op)
				other.exchange(right)
				if want.status == driver.Flushed { // the request waits for the peer's receive
					require.NoError(t, p.Await(testwatch.Context(t), func(c peer.Counts) bool { return c.Requests > 3 }))
					a.none()
					a.modify(driver.StateErr)
				}
				a.concludes(op, want)
				require.Equal(t, want.applied, applied(op, p))
				if c.Silent { // the device has given up after a known number of tries
					require.LessOrEqual(t, p.Counts().Requests, packetsMoved*(DefaultRetryCount+2))
				}
				effect(op, want, mine, theirs)
				require.Equal(t, mine, a.mem)
				require.Equal(t, theirs, p.Memory())
				other.exchange(right)

				a.modify(driver.StateReset)
				p.Behave(peer.Conduct{})
				a.meet(p, requestPSN)
				a.exchange(p)
			})
		}
	}
}

// moved is the number of bytes of a WRITE, READ or SEND.
const (
	moved        = 2500
	packetsMoved = 3
)

// pattern returns memory that is different for each seed.
func pattern(seed int) []byte {
	b := make([]byte, memorySize)
	for i := range b {
		b[i] = byte(i*seed) | 1
	}
	return b
}

// request posts a request, and returns the memory of both ends before.
func (e *end) request(p *peer.Endpoint, op driver.Opcode) (mine, theirs []byte) {
	e.t.Helper()
	copy(e.mem, pattern(7))
	mine, theirs = bytes.Clone(e.mem), p.Memory()
	n := moved
	if op == driver.OpFetchAdd {
		n = 8
	}
	e.post(driver.WorkRequest{ID: 1, Op: op, Flags: driver.Signaled, Local: e.segment(n), Remote: to(p, 0), Operand: 3})
	return mine, theirs
}

// concludes waits for the completion of request. If it failed, a request behind it is flushed.
func (e *end) concludes(op driver.Opcode, want ending) {
	e.t.Helper()
	wc := e.next()
	require.Equal(e.t, [3]any{uint64(1), want.status, op}, [3]any{wc.ID, wc.Status, wc.Op}, "%v", wc.Err)
	if want.status == driver.Success {
		return
	}
	if want.cause != nil {
		require.ErrorIs(e.t, wc.Err, want.cause)
		require.ErrorContains(e.t, wc.Err, "; ", "the error says what to do")
	}
	if want.cause == driver.ErrLost && want.status == driver.RetryExceeded {
		require.ErrorIs(e.t, e.event(driver.EventQPFatal).Err, driver.ErrLost)
	}
	e.post(driver.WorkRequest{ID: 2, Op: driver.OpWrite, Flags: driver.Signaled, Local: e.segment(8)})
	wc = e.next()
	require.Equal(e.t, [2]any{uint64(2), driver.Flushed}, [2]any{wc.ID, wc.Status})
	e.none()
}

// applied returns how often the endpoint applied an operation.
func applied(op driver.Opcode, p *peer.Endpoint) int {
	c := p.Counts()
	return map[driver.Opcode]int{driver.OpWrite: c.Writes, driver.OpRead: c.Reads, driver.OpFetchAdd: c.Atomics, driver.OpSend: c.Sends}[op]
}

// effect does to both memories what the operation does to them.
func effect(op driver.Opcode, want ending, mine, theirs []byte) {
	old := binary.NativeEndian.Uint64(theirs)
	switch {
	case op == driver.OpRead && want.status == driver.Success:
		copy(mine, theirs[:moved])
	case op == driver.OpFetchAdd && want.status == driver.Success:
		binary.NativeEndian.PutUint64(mine, old)
	}
	switch {
	case op == driver.OpWrite && want.applied > 0:
		copy(theirs, mine[:moved])
	case op == driver.OpFetchAdd && want.applied > 0:
		binary.NativeEndian.PutUint64(theirs, old+3)
	}
}

// exchange has a right endpoint apply a WRITE, a FETCH_ADD and a READ, and checks them.
func (e *end) exchange(p *peer.Endpoint) {
	e.t.Helper()
	copy(e.mem, pattern(13))
	want := p.Memory()
	for id, wr := range []driver.WorkRequest{
		{Op: driver.OpWrite, Local: e.segment(moved), Remote: to(p, 8)},
		{Op: driver.OpFetchAdd, Local: e.segment(8), Remote: to(p, 0), Operand: 1},
		{Op: driver.OpRead, Local: e.segment(memorySize), Remote: to(p, 0)},
	} {
		wr.ID, wr.Flags = uint64(id), driver.Signaled
		e.post(wr)
		wc := e.next()
		require.Equal(e.t, [2]any{uint64(id), driver.Success}, [2]any{wc.ID, wc.Status}, "%v", wc.Err)
	}
	copy(want[8:], pattern(13)[:moved])
	binary.NativeEndian.PutUint64(want, binary.NativeEndian.Uint64(want)+1)
	require.Equal(e.t, want, p.Memory())
	require.Equal(e.t, want, e.mem)
}
