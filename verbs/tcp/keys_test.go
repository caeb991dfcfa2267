//go:build linux

package tcp

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestKeysDifferInRandomBits(t *testing.T) {
	n := newNode(t, 8, 0)
	seen, mem := map[driver.Key]bool{}, alignedBytes(8)
	var ones [128]int
	const keys = 400
	for range keys {
		mr, err := n.RegMR(t.Context(), driver.Memory{Bytes: mem}, driver.AllAccess)
		require.NoError(t, err)
		key := mr.RKey()
		require.False(t, seen[key])
		seen[key] = true
		for i := range 64 {
			ones[i] += int(key.Lo >> i & 1)
			ones[64+i] += int(key.Hi >> i & 1)
		}
	}
	require.Equal(t, keys, ones[0], "no key is zero")
	for bit, count := range ones[1:] { // a fair coin fails this once in 1e20 runs
		require.InDelta(t, keys/2, count, keys/4, "bit %d", bit+1)
	}
}

// TestGuessOfAKeyCostsTheStream has an authenticated peer guess: a second guess in the
// same stream is not looked at.
func TestGuessOfAKeyCostsTheStream(t *testing.T) {
	v := newVictim(t)
	right := frame{kind: kindWrite, flags: flagLast, length: 16, addr: v.open.Addr(), key: v.open.RKey()}
	wrong := right
	wrong.key.Lo ^= 2
	v.peer.frame(wrong, make([]byte, 16)...)
	v.peer.frame(right, []byte("sixteen bytes!!!")...)
	require.Equal(t, driver.RemoteAccess, v.peer.nak())
	require.Equal(t, driver.EventQPFatal, v.event().Kind)
	require.NoError(t, v.peer.conn.(patient).CloseWrite())
	v.peer.hangsUp() // once it has read all frames
	require.Equal(t, v.untouched, v.all)
}

// TestKeyEndsWithItsRegion registers memory again after its region has closed: the new
// key is another one, and the old one names nothing.
func TestKeyEndsWithItsRegion(t *testing.T) {
	v := newVictim(t)
	old := v.open.RKey()
	require.NoError(t, v.open.Close())
	again, err := v.RegMR(t.Context(), driver.Memory{Bytes: v.all[128:192]}, driver.AllAccess)
	require.NoError(t, err)
	require.NotEqual(t, old, again.RKey())
	v.peer.frame(frame{kind: kindWrite, flags: flagLast, length: 16, addr: again.Addr(), key: old}, make([]byte, 16)...)
	require.Equal(t, driver.RemoteAccess, v.peer.nak())
	require.Equal(t, v.untouched, v.all)
}

// TestStrangersGiveTheirDescriptorsToAPeer leaves this process no descriptors but those
// that strangers hold.
func TestStrangersGiveTheirDescriptorsToAPeer(t *testing.T) {
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	strangersOf := func(n *node) (count int) {
		n.token.Lock()
		defer n.token.Unlock()
		return len(n.strangers)
	}
	for _, n := range []*node{a, b} {
		for range 8 {
			conn, err := net.Dial("tcp", n.endpoints[0].String())
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() }) //nolint:errcheck // it may have been cut
		}
		eventually(t, "strangers to be accepted", func() bool { return strangersOf(n) == 8 })
	}
	qa, qb := a.newQP(4), b.newQP(4)
	addrA, addrB := qa.Address(), qb.Address()

	defer takeDescriptors(t, a.listener)()
	require.NoError(t, qa.Modify(context.Background(), driver.StateRTR, driver.Attr{Peer: addrB}))
	require.NoError(t, qb.Modify(context.Background(), driver.StateRTR, driver.Attr{Peer: addrA}))
	eventually(t, "the queue pairs to connect", func() bool { return qa.connection() != nil && qb.connection() != nil })
	require.Less(t, strangersOf(a)+strangersOf(b), 16)
}

// takeDescriptors takes all descriptors that this process may still open. The function
// returned gives them back.
func takeDescriptors(t *testing.T, of int) (giveBack func()) {
	t.Helper()
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(before.Cur, 500), Max: before.Max}))
	var taken []int
	for {
		fd, err := unix.FcntlInt(uintptr(of), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	return func() {
		for _, fd := range taken {
			unix.Close(fd) //nolint:errcheck // nothing was written
		}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	}
}

// TestAcceptKeepsAConnectionThatTakesTheLastDescriptor leaves the device one descriptor.
// The next accept finds none, and no connection that waits: it must cut nothing.
func TestAcceptKeepsAConnectionThatTakesTheLastDescriptor(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	conn, err := net.Dial("tcp", n.endpoints[0].String())
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // it is open at both ends
	eventually(t, "the connection to be accepted", func() bool {
		n.token.Lock()
		defer n.token.Unlock()
		return len(n.strangers) == 1
	})
	defer takeDescriptors(t, n.listener)()
	n.token.Lock()
	defer n.token.Unlock()
	n.strangers[0].due = n.strangers[0].due.Add(-acceptPause)
	n.accept()
	require.Len(t, n.strangers, 1)
	require.True(t, n.strangers[0].up())
}
