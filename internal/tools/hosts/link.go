//go:build linux

package hosts

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Conditions are the faults of a link in one direction. The zero value has none.
type Conditions struct {
	Delay time.Duration // of each frame
	Loss  float64       // the share of frames that the link drops, between 0 and 1
	Rate  float64       // bytes a second; 0: no limit
	Down  bool          // the link drops all frames, without a reset or another sign

	// NoConnect drops the first packet of each TCP connection, as a firewall does.
	// Connections in the other direction work.
	NoConnect bool
}

// backlog bounds the frames that wait for a limited rate. The link drops further ones.
const backlog = 50 * time.Millisecond

// Between sets the conditions of the link of two hosts, in both directions.
func (n *Network) Between(a, b *Host, c Conditions) {
	n.OneWay(a, b, c)
	n.OneWay(b, a, c)
}

// OneWay sets the conditions of the frames from one host to another.
func (n *Network) OneWay(from, to *Host, c Conditions) {
	source, target := n.portOf(from), n.portOf(to)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.direction(source, target).set(c)
}

// Around sets the conditions of all links of a host.
func (n *Network) Around(h *Host, c Conditions) {
	for _, other := range n.members() {
		if other != h {
			n.Between(h, other, c)
		}
	}
}

// Everywhere sets the conditions of all links.
func (n *Network) Everywhere(c Conditions) {
	for _, h := range n.members() {
		n.Around(h, c)
	}
}

// members returns the hosts on the network.
func (n *Network) members() (all []*Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		all = append(all, p.host)
	}
	return all
}

// Unplug takes the carrier from a host's interface, and Plug returns it. Programs of the
// host see that the interface is down.
func (n *Network) Unplug(h *Host) { n.plug(h, 0) }

// Plug returns the carrier.
func (n *Network) Plug(h *Host) { n.plug(h, 1) }

// plug sets the carrier of a host's interface: 0 is a cable that is out.
func (n *Network) plug(h *Host, on int) {
	n.bed.t.Helper()
	conn, err := n.portOf(h).file.SyscallConn()
	n.bed.must(err, "interface of host %s", h.name)
	err = conn.Control(func(fd uintptr) { err = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, on) })
	n.bed.must(err, "carrier of host %s", h.name)
}

// Traffic counts the frames of a link in one direction.
type Traffic struct {
	Frames, Bytes uint64 // that the target's interface took
	Dropped       uint64 // frames
}

// Sent returns the traffic from one host to another so far.
func (n *Network) Sent(from, to *Host) Traffic {
	source, target := n.portOf(from), n.portOf(to)
	n.mu.Lock()
	d := n.direction(source, target)
	n.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// A direction carries frames from one port to another, in order.
type direction struct {
	to   *port
	goes *sync.WaitGroup

	mu      sync.Mutex
	random  *rand.Rand
	now     Conditions
	closed  bool
	queue   []delayed // frames that leave later, oldest first
	sending bool      // a goroutine sends them
	free    time.Time // moment at which a limited rate has room
	count   Traffic
}

// delayed is a frame and the moment at which it arrives.
type delayed struct {
	frame []byte
	due   time.Time
}

// set changes the conditions of a link. A link that goes down loses the frames on their way.
func (d *direction) set(c Conditions) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = c
	if c.Down { // frames under way are lost as well
		d.count.Dropped += uint64(len(d.queue))
		d.queue = nil
	}
}

// close drops all frames that are under way, and those to come.
func (d *direction) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.queue = true, nil
}

// carry sends a frame, now or later, or drops it. The caller keeps the frame.
func (d *direction) carry(frame []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.closed || d.now.Down || d.now.NoConnect && connects(frame) || d.now.Loss > 0 && d.random.Float64() < d.now.Loss || d.free.Sub(now) > backlog {
		d.count.Dropped++
		return
	}
	due := now
	if d.now.Rate > 0 {
		if d.free.Before(now) {
			d.free = now
		}
		d.free = d.free.Add(time.Duration(float64(len(frame)) / d.now.Rate * float64(time.Second)))
		due = d.free
	}
	due = due.Add(d.now.Delay)
	if !due.After(now) && len(d.queue) == 0 && !d.sending {
		d.deliver(frame)
		return
	}
	d.queue = append(d.queue, delayed{slices.Clone(frame), due})
	if !d.sending {
		d.sending = true
		d.goes.Go(d.send)
	}
}

// connects reports whether a frame is the first of a TCP connection.
func connects(frame []byte) bool {
	const ethernet, tcp, syn, ack = 14, 6, 0x02, 0x10
	if len(frame) <= ethernet {
		return false
	}
	packet := frame[ethernet:]
	var protocol byte
	var header int
	switch {
	case packet[0]>>4 == 4 && len(packet) > 20:
		protocol, header = packet[9], int(packet[0]&15)*4
	case packet[0]>>4 == 6 && len(packet) > 40: // Linux sends TCP without extensions
		protocol, header = packet[6], 40
	}
	return protocol == tcp && len(packet) > header+13 && packet[header+13]&(syn|ack) == syn
}

// deliver hands a frame to the target's interface, which drops it when it is full or
// down. Precondition: mu is held.
func (d *direction) deliver(frame []byte) {
	if _, err := d.to.file.Write(frame); err != nil {
		d.count.Dropped++
		return
	}
	d.count.Frames++
	d.count.Bytes += uint64(len(frame))
}

// send sends the frames of the queue until it is empty.
func (d *direction) send() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) > 0 {
		if wait := time.Until(d.queue[0].due); wait > 0 {
			d.mu.Unlock()
			pause(wait)
			d.mu.Lock()
			continue
		}
		d.deliver(d.queue[0].frame)
		d.queue = d.queue[1:]
	}
	d.sending = false
}

// pause sleeps. The Go runtime rounds short sleeps of an idle process up to a
// millisecond, the kernel does not.
func pause(d time.Duration) {
	if d > 2*time.Millisecond {
		time.Sleep(d - time.Millisecond)
		return
	}
	spec := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&spec, nil) // a signal ends it early, and the caller looks again
}

// ip runs the program ip.
func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}
