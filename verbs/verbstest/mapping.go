package verbstest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

func mappingCases() []testCase {
	return []testCase{
		{"MappedMemoryIsThePeersMemory", mapMemory},
		{"MappingIsCheckedLikeAccess", mapRefusals},
		{"MappingOutlivesItsRegion", mapOutlives},
		{"PeerBellWakesThePeer", peerBell},
	}
}

// mapAll maps all of b's region, or skips the case if the provider cannot map.
func mapAll(t *testing.T, a, b *side) []byte {
	t.Helper()
	mem, err := a.qp.Map(testwatch.Context(t), b.mr.Remote(0), b.cfg.memory, verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic)
	if errors.Is(err, driver.ErrUnsupported) {
		t.Skip("the provider maps no memory")
	}
	require.NoError(t, err)
	require.Len(t, mem, b.cfg.memory)
	require.Equal(t, b.cfg.memory, cap(mem), "nothing beyond the checked range can be reached")
	return mem
}

// mapMemory changes one word by the mapping, by the owner and by the queue in turn. All three must
// see one memory.
func mapMemory(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	mem := mapAll(t, a, b)
	word64(b.bytes(128, 8)).Store(41)
	require.Equal(t, uint64(41), word64(mem[128:136]).Load())
	word64(mem[128:136]).Add(1)
	require.Equal(t, uint64(42), word64(b.bytes(128, 8)).Load())
	part, err := a.qp.Map(testwatch.Context(t), b.mr.Remote(128), 8, verbs.RemoteRead)
	require.NoError(t, err)
	require.Equal(t, uint64(42), word64(part).Load())
	a.do(verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: 1, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(128)})
	require.Equal(t, uint64(42), get64(a.bytes(0, 8)), "the queue sees what the mapping stored")
	require.Equal(t, uint64(43), word64(part).Load())
}

// mapRefusals maps memory that the peer has not granted. Map checks by itself: no request would
// fail later. The QP stays usable.
func mapRefusals(t *testing.T, h Harness) {
	a, b := newPair(t, h, withAccess(verbs.LocalWrite|verbs.RemoteRead))
	size := b.cfg.memory
	_, err := a.qp.Map(testwatch.Context(t), b.mr.Remote(0), size, verbs.RemoteRead)
	if errors.Is(err, driver.ErrUnsupported) {
		t.Skip("the provider maps no memory")
	}
	require.NoError(t, err)
	for name, c := range map[string]struct {
		remote verbs.RemoteAddr
		n      int
		access verbs.Access
	}{
		"missing right":          {b.mr.Remote(0), 8, verbs.RemoteWrite},
		"one missing of two":     {b.mr.Remote(0), 8, verbs.RemoteRead | verbs.RemoteAtomic},
		"one byte too many":      {b.mr.Remote(0), size + 1, verbs.RemoteRead},
		"one byte before":        {b.mr.Remote(-1), 8, verbs.RemoteRead},
		"address overflows":      {verbs.RemoteAddr{Addr: ^uint64(0) - 3, RKey: b.mr.RKey()}, 8, verbs.RemoteRead},
		"key of nothing":         {verbs.RemoteAddr{Addr: b.mr.Remote(0).Addr, RKey: verbs.Key{Hi: 1, Lo: 1}}, 8, verbs.RemoteRead},
		"zero key":               {verbs.RemoteAddr{Addr: b.mr.Remote(0).Addr}, 8, verbs.RemoteRead},
		"length beyond any size": {b.mr.Remote(8), int(^uint(0) >> 1), verbs.RemoteRead},
	} {
		_, err := a.qp.Map(testwatch.Context(t), c.remote, c.n, c.access)
		require.ErrorIs(t, err, driver.ErrAccess, name)
	}
	_, err = a.qp.Map(testwatch.Context(t), b.mr.Remote(0), -1, verbs.RemoteRead)
	require.ErrorIs(t, err, driver.ErrInvalid)
	a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
}

// mapOutlives loads by a mapping whose region was closed. The loads must not fault, since the peer
// closes regions without a word to this side.
func mapOutlives(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	mem := mapAll(t, a, b)
	require.NoError(t, b.mr.Close())
	sum := 0
	for _, v := range mem { // garbage, but no fault
		sum += int(v)
	}
	require.GreaterOrEqual(t, sum, 0)
	_, err := a.qp.Map(testwatch.Context(t), b.mr.Remote(0), 8, verbs.RemoteRead)
	require.ErrorIs(t, err, driver.ErrAccess)
}

// peerBell stores in mapped memory and rings. The peer sleeps on its bell until then.
func peerBell(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	mem := mapAll(t, a, b)
	bell, ok := a.qp.PeerBell()
	require.True(t, ok, "a provider that maps has a bell")
	for i := range uint64(5) {
		b.waitForWord(64, i+1, func() {
			word64(mem[64:72]).Store(i + 1)
			bell.Ring()
		})
	}
}
