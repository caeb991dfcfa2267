//go:build ibverbs

package ibv

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/roce/peer"
	"github.com/gopgas/gopgas/internal/tools/roce/wire"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A misbehaving peer is at one end of a veth pair, and a software device at the other:
//
//	queue pairs -> rxe1 on roce0 at 10.9.0.1  <-->  roce1, peer.Peer at 10.9.0.2
const (
	deviceAddr = "10.9.0.1"
	peerAddr   = "10.9.0.2"
	memorySize = 4096
)

// onWire has queue pairs use the device on the veth pair.
var onWire = Config{Device: "rxe1", GID: deviceAddr, MTU: 1024, PeerTimeout: 3 * time.Second}

// newPeer makes the veth pair, the device and the peer.
func newPeer(t *testing.T) *peer.Peer {
	t.Helper()
	if os.Getenv("GOPGAS_IBV_REQUIRED") != "1" {
		t.Skip("it makes a device of its own: scripts/ibv.sh runs it on an emulated machine")
	}
	command(t, "ip link add roce0 type veth peer name roce1")
	t.Cleanup(func() { command(t, "ip link del roce0") })
	local, err := net.InterfaceByName("roce0")
	require.NoError(t, err)
	remote, err := net.InterfaceByName("roce1")
	require.NoError(t, err)
	command(t, "ip link set roce0 up")
	command(t, "ip link set roce1 up")
	command(t, "ip address add "+deviceAddr+"/24 dev roce0")
	command(t, "ip neigh replace "+peerAddr+" lladdr "+remote.HardwareAddr.String()+" dev roce0 nud permanent")
	command(t, "rdma link add rxe1 type rxe netdev roce0")
	require.Eventually(t, hasGID, testwatch.Patience(), 10*time.Millisecond)
	p, err := peer.Open("roce1", netip.MustParseAddr(peerAddr), peer.Address{MAC: wire.MAC(local.HardwareAddr), IP: netip.MustParseAddr(deviceAddr)})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.Zero(t, p.Damaged(), "frames of the device whose ICRC is wrong")
	})
	return p
}

// hasGID reports whether the kernel has entered the address of the veth pair.
func hasGID() bool {
	files, _ := filepath.Glob("/sys/class/infiniband/rxe1/ports/1/gids/*") //nolint:errcheck // the pattern is right
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), "ffff:0a09:0001") {
			return true
		}
	}
	return false
}

func command(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", line, out)
}

// requestPSN is the number of the first packet that an endpoint sends.
const requestPSN = 0x800000

// addressOfPeer returns the address of an endpoint as a queue pair of this provider would
// return it.
func addressOfPeer(e *peer.Endpoint, psn uint32) []byte {
	a := address{mtu: mtuCode(1024), reads: 4, qpn: e.Num(), psn: psn, link: linkEthernet,
		gid: gid(netip.MustParseAddr(peerAddr).As16())}
	return a.encode()
}

// meet connects a queue pair in RESET and an endpoint.
func (e *end) meet(p *peer.Endpoint, psn uint32) {
	e.t.Helper()
	own, err := decodeAddress(e.qp.Address())
	require.NoError(e.t, err)
	p.Connect(own.qpn, own.psn)
	e.connect(addressOfPeer(p, psn))
}

// to returns where a request finds the endpoint's memory.
func to(p *peer.Endpoint, offset uint64) driver.RemoteAddr {
	addr, key := p.Addr()
	return driver.RemoteAddr{Addr: addr + offset, RKey: driver.Key{Lo: uint64(key)}}
}
