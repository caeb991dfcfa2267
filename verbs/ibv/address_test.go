package ibv

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

var (
	overEthernet = address{mtu: 5, reads: 16, qpn: 17, psn: max24, link: linkEthernet,
		gid: netip.MustParseAddr("::ffff:10.0.0.1").As16()}
	overInfiniBand = address{mtu: 4, reads: 1, qpn: max24, psn: 0, lid: 0xBFFF, link: linkInfiniBand}
)

func TestAddressesSurviveEncoding(t *testing.T) {
	for _, want := range []address{overEthernet, overInfiniBand} {
		wire := want.encode()
		require.Len(t, wire, addressSize)
		got, err := decodeAddress(wire)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestInvalidAddressesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(a *address, wire func(int, byte)){
		"no QP number":          func(a *address, _ func(int, byte)) { a.qpn = 0 },
		"QP number of 25 bits":  func(a *address, _ func(int, byte)) { a.qpn = 1 << 24 },
		"packet number too big": func(a *address, _ func(int, byte)) { a.psn = 1 << 24 },
		"no MTU":                func(a *address, _ func(int, byte)) { a.mtu = 0 },
		"MTU of 8192":           func(a *address, _ func(int, byte)) { a.mtu = 6 },
		"unknown link":          func(a *address, _ func(int, byte)) { a.link = 3 },
		"no GID":                func(a *address, _ func(int, byte)) { a.gid = gid{} },
		"multicast GID":         func(a *address, _ func(int, byte)) { a.gid[0] = 0xFF },
		"no LID":                func(a *address, _ func(int, byte)) { a.link, a.lid = linkInfiniBand, 0 },
		"multicast LID":         func(a *address, _ func(int, byte)) { a.link, a.lid = linkInfiniBand, firstMultLID },
		"other magic":           func(_ *address, set func(int, byte)) { set(0, 0) },
		"later version":         func(_ *address, set func(int, byte)) { set(offVersion, 2) },
		"byte set behind link":  func(_ *address, set func(int, byte)) { set(offZero, 1) },
	} {
		a := overEthernet
		edits := map[int]byte{}
		spoil(&a, func(at int, v byte) { edits[at] = v })
		wire := a.encode()
		for at, v := range edits {
			wire[at] = v
		}
		_, err := decodeAddress(wire)
		require.ErrorIs(t, err, driver.ErrInvalid, name)
	}
}

func TestAddressesOfAnotherLengthAreRefused(t *testing.T) {
	wire := overEthernet.encode()
	for n := range wire {
		_, err := decodeAddress(wire[:n])
		require.ErrorIs(t, err, driver.ErrInvalid, "%d bytes", n)
	}
	_, err := decodeAddress(append(wire, 0))
	require.ErrorIs(t, err, driver.ErrInvalid)
}

// FuzzAddress checks that encode turns each accepted address back into the same
// bytes.
func FuzzAddress(f *testing.F) {
	f.Add(overEthernet.encode())
	f.Add(overInfiniBand.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, wire []byte) {
		a, err := decodeAddress(wire)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrInvalid)
			return
		}
		require.Equal(t, wire, a.encode())
	})
}
