//go:build linux

package tcp

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A path connects the queue pairs that this device has with those of one other device.
// Each of them is a stream of one of its connections. One side of the path dials the
// connections. The other side probes the dialer's port while a queue pair waits.
//
// Its lock is that of its queue pairs and of its connections. The token guards the
// other fields, apart from those that never change.
type path struct {
	dev       *device
	key       pathKey
	endpoints []netip.AddrPort // of the peer's device, those of shared subnets first

	mu sync.Mutex

	qps     []*qp         // bound to the path: each knows its peer and has not broken
	links   []*link       // connections that this side dialed, and that may get further streams
	attempt *link         // a connection that this side dials, or nil
	next    int           // endpoint to try
	tried   int           // endpoint of the latest attempt
	gone    int           // endpoints of this round at which no device listens
	failure error         // of the latest attempt, or nil
	pause   time.Duration // until the next round
	timer   *time.Timer   // of the pause
	resting bool          // the pause is not over
	spare   int           // a descriptor kept for a connection, so that a shortage shows at once; 0: none
}

// A pathKey names a path. The device's number alone does not: a peer may claim any
// number, but cannot listen at another's endpoints. A device has two paths to itself.
type pathKey struct {
	peer  string // device and endpoints, as in an address
	dials bool
}

// path returns the path to the device of an address. Precondition: the token is held.
func (d *device) path(to *address, dials bool) *path {
	key := pathKey{peer: string(to.encode()[offAddressDevice:]), dials: dials}
	p := d.paths[key]
	if p == nil {
		p = &path{dev: d, key: key, endpoints: d.nearFirst(to.endpoints)}
		p.renew()
		d.paths[key] = p
	}
	return p
}

// bind makes p the path of q, and p's lock that of q. A goroutine that holds two of
// these locks also holds the token, so there is no deadlock. Precondition: token and
// q's lock are held.
func (p *path) bind(q *qp) {
	p.qps = append(p.qps, q)
	q.path = p
	if old := q.mu.Load(); old != &p.mu {
		p.mu.Lock()
		q.mu.Store(&p.mu)
		old.Unlock()
	}
}

// unbind takes q off the path. Precondition: token and lock are held, and q has no
// stream.
func (p *path) unbind(q *qp) {
	p.qps = slices.DeleteFunc(p.qps, func(x *qp) bool { return x == q })
	q.path = nil
	p.settle()
	p.end()
}

// end forgets a path without queue pairs and connections. An accepted connection may
// outlast the queue pairs, with streams that wait for others. Precondition: the token is
// held.
func (p *path) end() {
	d := p.dev
	used := len(p.qps) > 0 || slices.ContainsFunc(d.links, func(l *link) bool { return l != nil && l.path == p })
	if !used && d.paths[p.key] == p {
		delete(d.paths, p.key)
	}
}

// waits reports whether a queue pair has no stream yet.
func (p *path) waits() bool { return slices.ContainsFunc(p.qps, (*qp).connecting) }

// settle ends the search for the peer, unless a queue pair waits. The next queue pair
// starts a search of its own.
func (p *path) settle() {
	if p.waits() {
		return
	}
	p.giveSpare()
	p.wake()
	if p.attempt != nil {
		p.attempt.drop()
	}
	p.renew()
}

// renew makes the search start again at the first endpoint, with the shortest pause.
func (p *path) renew() {
	p.next, p.gone, p.failure, p.pause = 0, 0, nil, firstProbe
	if p.key.dials {
		p.pause = firstPause
	}
}

// wake ends the pause.
func (p *path) wake() {
	if p.resting {
		p.timer.Stop()
		p.resting = false
	}
}

// lock takes the lock that guards q. That of a path replaces the queue pair's own one,
// once q knows its peer. It changes only while the device's token is held.
func (q *qp) lock() {
	for {
		m := q.mu.Load()
		m.Lock()
		if q.mu.Load() == m {
			return
		}
		m.Unlock()
	}
}

func (q *qp) unlock() { q.mu.Load().Unlock() }

// connecting reports whether q knows its peer but is not connected yet.
func (q *qp) connecting() bool {
	return q.link == nil && (q.state == driver.StateRTR || q.state == driver.StateRTS || q.state == driver.StateSQD)
}

// seeking reports whether q waits and has not requested a stream of a connection.
func (q *qp) seeking() bool { return q.stream == nil && q.connecting() }
