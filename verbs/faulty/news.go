package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// news is what reached a context from elsewhere: an event from below, or a cut
// at the peer.
type news struct {
	event driver.AsyncEvent
	qp    *qp // nil for the device
	life  uint32
	cut   bool
}

// observe is told of events below, on goroutines that may hold any lock but
// newsMu.
func (d *device) observe(e driver.AsyncEvent) {
	d.newsMu.Lock()
	n := news{event: e, qp: d.byNum[e.QP], life: e.Life}
	d.newsMu.Unlock()
	d.note(n)
}

func (d *device) note(n news) {
	d.newsMu.Lock()
	d.news = append(d.news, n)
	d.newsMu.Unlock()
	d.wake()
}

// current: it is not about a connection of the past. An event would break the
// connection that came after it.
func (n *news) current() bool { return n.qp == nil || n.life == n.qp.life.Load() }

// send has the pump report n.
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

// deviceEvent passes on what concerns the device, and with it every QP.
func (d *device) deviceEvent(e driver.AsyncEvent) {
	if e.Kind == driver.EventDeviceFatal {
		for _, q := range d.qps {
			q.blame(q.sends.next, e.Err)
			q.enterErr()
		}
	}
	d.send(news{event: e})
}
