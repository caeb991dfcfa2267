//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Family is a set of address families.
type Family uint8

// These are the families.
const (
	IPv4 Family = 1 << iota
	IPv6
)

// A Network connects hosts by a switch. Every pair of hosts has a link, which may be slow
// or broken.
type Network struct {
	bed    *Testbed
	number int
	family Family

	mu    sync.Mutex
	ports []*port
	links map[[2]*port]*direction
	goes  sync.WaitGroup // one reader for each port, and senders of slow links
}

// A port is a host's interface on a network.
type port struct {
	host  *Host
	net   *Network
	name  string // of the interface
	mac   [6]byte
	addrs []netip.Prefix
	file  *os.File // the TAP device
}

// Network makes a network without hosts.
func (b *Testbed) Network(family Family) *Network {
	n := &Network{bed: b, number: len(b.networks) + 1, family: family, links: map[[2]*port]*direction{}}
	b.networks = append(b.networks, n)
	return n
}

// mtu is that of Ethernet with large frames: fewer of them pass through the switch.
const mtu = 9000

// Join gives h an interface on the network, with an address of each family.
func (n *Network) Join(h *Host) {
	n.bed.t.Helper()
	i := byte(len(n.ports) + 1)
	p := &port{host: h, net: n, name: fmt.Sprintf("eth%d", len(h.ports)), mac: [6]byte{2, 'g', 'p', 0, byte(n.number), i}}
	if n.family&IPv4 != 0 {
		p.addrs = append(p.addrs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 231, byte(n.number), i}), 24))
	}
	if n.family&IPv6 != 0 {
		p.addrs = append(p.addrs, netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 2, 0x31, 0, byte(n.number), 15: i}), 64))
	}
	n.bed.must(h.Do(p.open), "interface %s of host %s", p.name, h.name)
	h.ports = append(h.ports, p)
	n.bed.writeNames()
	n.mu.Lock()
	n.ports = append(n.ports, p)
	n.mu.Unlock()
	n.goes.Go(p.read)
}

// open makes the interface. It runs inside the host.
func (p *port) open() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq(p.name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	p.file = os.NewFile(uintptr(fd), "TAP device "+p.name)
	return p.configure()
}

// configure gives the port its address, and starts it. IPv6 addresses are usable at once.
func (p *port) configure() error {
	commands := [][]string{{"link", "set", p.name, "address", fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x",
		p.mac[0], p.mac[1], p.mac[2], p.mac[3], p.mac[4], p.mac[5]), "mtu", fmt.Sprint(mtu), "txqueuelen", "4000"}}
	for _, a := range p.addrs {
		add := []string{"addr", "add", a.String(), "dev", p.name}
		if a.Addr().Is6() {
			add = append(add, "nodad")
		}
		commands = append(commands, add)
	}
	for _, args := range append(commands, []string{"link", "set", p.name, "up"}) {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

// addr returns the port's address of a family.
func (p *port) addr(family Family) netip.Addr {
	for _, a := range p.addrs {
		if a.Addr().Is4() && family&IPv4 != 0 || a.Addr().Is6() && family&IPv6 != 0 {
			return a.Addr()
		}
	}
	return netip.Addr{}
}

// Addr returns the address of a host on this network.
func (n *Network) Addr(h *Host, family Family) netip.Addr { return n.portOf(h).addr(family) }

// portOf returns the port of a host. A host that has not joined is a mistake of the test.
func (n *Network) portOf(h *Host) *port {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		if p.host == h {
			return p
		}
	}
	panic("host " + h.name + " has not joined the network")
}

// direction returns the link from one port to another.
func (n *Network) direction(from, to *port) *direction {
	key := [2]*port{from, to}
	d := n.links[key]
	if d == nil {
		seed := uint64(from.mac[5])<<16 | uint64(to.mac[5])<<8 | uint64(n.number)
		d = &direction{to: to, goes: &n.goes, random: rand.New(rand.NewPCG(n.bed.seed, seed))}
		n.links[key] = d
	}
	return d
}

// read forwards the frames that the host sends, until the network closes.
func (p *port) read() {
	frame := make([]byte, mtu+64)
	for {
		size, err := p.file.Read(frame)
		if err != nil {
			return
		}
		if size >= 14 {
			p.net.forward(p, frame[:size])
		}
	}
}

// forward sends a frame to the port of its destination, or to all for a broadcast.
func (n *Network) forward(from *port, frame []byte) {
	const broadcast = 1 // the lowest bit of the first byte, also of multicasts
	n.mu.Lock()
	var to []*direction
	for _, p := range n.ports {
		if p != from && (frame[0]&broadcast != 0 || [6]byte(frame[:6]) == p.mac) {
			to = append(to, n.direction(from, p))
		}
	}
	n.mu.Unlock()
	for _, d := range to {
		d.carry(frame)
	}
}

// close ends the network: it waits until no goroutine moves frames any more.
func (n *Network) close() {
	n.mu.Lock()
	for _, d := range n.links {
		d.close()
	}
	for _, p := range n.ports {
		_ = p.file.Close() // ends its reader
	}
	n.mu.Unlock()
	n.goes.Wait()
}
