//go:build linux

package peer

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/tools/roce/link"
	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

// An Address is where frames come from and go to.
type Address struct {
	MAC wire.MAC
	IP  netip.Addr
}

// longestFrame is more than any device sends: 4096 bytes of payload and all headers.
const longestFrame = 8 << 10

// A Peer is a port with queue pairs.
type Peer struct {
	link          *link.Link
	local, remote Address
	damaged       atomic.Int64
	reader        sync.WaitGroup

	mu        sync.Mutex
	endpoints map[uint32]*Endpoint
}

// Open opens the interface name as a port with address local. remote is the device's port. It
// starts a goroutine, which Close ends.
func Open(name string, local netip.Addr, remote Address) (*Peer, error) {
	l, err := link.Open(name, false)
	if err != nil {
		return nil, err
	}
	p := &Peer{link: l, local: Address{wire.MAC(l.MAC()), local}, remote: remote, endpoints: map[uint32]*Endpoint{}}
	p.reader.Go(p.read)
	return p, nil
}

// firstQPN is the number of the first endpoint: 0 and 1 are those of management.
const firstQPN = 0x100

// New returns an endpoint whose memory the device reads and writes. The memory is the
// endpoint's from now on.
func (p *Peer) New(memory []byte) *Endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := newEndpoint(uint32(firstQPN+len(p.endpoints)), memory, p.send)
	p.endpoints[e.num] = e
	return e
}

// Damaged returns the number of frames of RoCE v2 that did not decode or whose ICRC was wrong.
func (p *Peer) Damaged() int { return int(p.damaged.Load()) }

// Close waits for the goroutine.
func (p *Peer) Close() error {
	err := p.link.Close()
	p.reader.Wait()
	return err
}

// read responds to frames until the link is closed.
func (p *Peer) read() {
	for b := make([]byte, longestFrame); ; {
		n, err := p.link.Read(b)
		if err != nil {
			return
		}
		f, err := wire.DecodeFrame(b[:n])
		if err == wire.ErrOther { //nolint:errorlint // it is never wrapped, and most frames of some hosts are such
			continue
		}
		if err != nil || !f.Intact() {
			p.damaged.Add(1)
			continue
		}
		p.mu.Lock()
		e := p.endpoints[f.Packet.QPN]
		p.mu.Unlock()
		if e == nil || f.Dst != p.local.IP {
			continue
		}
		f.Packet.Payload = slices.Clone(f.Packet.Payload) // b is read into again
		if remote, out := e.receive(&f.Packet); len(out) > 0 {
			p.send(remote, out) //nolint:errcheck // the device repeats its request, as for a lost response
		}
	}
}

// send sends packets to a queue pair of the device.
func (p *Peer) send(remote uint32, packets []wire.Packet) error {
	for _, packet := range packets {
		packet.QPN, packet.PKey = remote, wire.DefaultPKey
		f := wire.Frame{SrcMAC: p.local.MAC, DstMAC: p.remote.MAC, Src: p.local.IP, Dst: p.remote.IP, SrcPort: wire.Port, Packet: packet}
		if _, err := p.link.Write(f.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}
