package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// news is an event from below, or a cut at the peer.
type news struct {
	event driver.AsyncEvent
	qp    *qp // nil for the device
	life  uint32
	cut   bool
}

// observe takes events from below, on goroutines that may hold any lock but
// newsMu.
func (d *device) observe(e driver.AsyncEvent) {
	d.newsMu.Lock()
	n := news{event: e, qp: d.byNum[e.QP], life: e.Life}
	d.newsMu.Unlock()
	d.note(n)
}

// note queues an event of the wrapped device for the pump.
func (d *device) note(n news) {
	d.newsMu.Lock()
	d.news = append(d.news, n)
	d.newsMu.Unlock()
	d.wake()
}

// current reports whether n belongs to the QP's present connection. An event of
// an earlier one would break the present one.
func (n *news) current() bool { return n.qp == nil || n.life == n.qp.life.Load() }

// send makes the pump report n.
func (d *device) send(n news) {
	d.outbox = append(d.outbox, n)
	d.wakeAt(d.now)
}

// hear acts on the news.
func (d *device) hear() {
	d.newsMu.Lock()
	all := d.news
	d.news = nil
	d.newsMu.Unlock()
	for _, n := range all {
		switch {
		case n.qp == nil:
			d.deviceEvent(n.event)
		case n.qp.closed || !n.current():
		case n.qp.state == driver.StateReset || n.qp.state == driver.StateInit: // late: no connection yet that could break
		case n.cut:
			n.qp.sever(errCut)
		default:
			n.qp.sever(n.event.Err)
		}
	}
}

// deviceEvent passes on an event of the device, which breaks every QP if it is
// fatal.
func (d *device) deviceEvent(e driver.AsyncEvent) {
	if e.Kind == driver.EventDeviceFatal {
		for _, q := range d.qps {
			q.blame(q.sends.next, e.Err)
			q.enterErr()
		}
	}
	d.send(news{event: e})
}
