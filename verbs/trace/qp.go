package trace

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A queuePair counts requests, and tells the sink of each.
type queuePair struct {
	driver.QP
	provider *Provider
	name     QP
	counts   *counters
}

// wrap gives q exactly the optional capabilities of the wrapped QP.
func wrap(q *queuePair) driver.QP {
	mapper, maps := q.QP.(driver.Mapper)
	canceler, cancels := q.QP.(driver.Canceler)
	switch {
	case maps && cancels:
		return struct {
			*queuePair
			tracedMapper
			tracedCanceler
		}{q, tracedMapper{mapper, q}, tracedCanceler{canceler, q}}
	case maps:
		return struct {
			*queuePair
			tracedMapper
		}{q, tracedMapper{mapper, q}}
	case cancels:
		return struct {
			*queuePair
			tracedCanceler
		}{q, tracedCanceler{canceler, q}}
	}
	return q
}

// each returns the two sets of counters that a request of q moves.
func (q *queuePair) each() [2]*counters { return [2]*counters{q.counts, &q.provider.total} }

// PostSend implements driver.QP. It counts the requests that the device took, behind the post.
func (q *queuePair) PostSend(wrs []driver.WorkRequest) (int, error) {
	n, err := q.QP.PostSend(wrs)
	for _, c := range q.each() {
		c.postCalls.Add(1)
		if err != nil {
			c.refused.Add(1)
		}
		for i := range wrs[:n] {
			c.request(&wrs[i])
		}
	}
	if q.provider.sink != nil {
		q.tellPosted(wrs[:n], err)
	}
	return n, err
}

// tellPosted tells the sink of requests that were posted, and of the error that ended the post.
func (q *queuePair) tellPosted(wrs []driver.WorkRequest, err error) {
	for i := range wrs {
		wr := &wrs[i]
		q.provider.tell(Event{Kind: Posted, QP: q.name, ID: wr.ID, Op: wr.Op, Flags: wr.Flags,
			Bytes: wr.Length(), Addr: wr.Remote.Addr})
	}
	if err != nil {
		q.provider.tell(Event{Kind: Refused, QP: q.name, Err: err})
	}
}

// PostRecv does for receives what PostSend does for requests.
func (q *queuePair) PostRecv(wrs []driver.RecvRequest) (int, error) {
	n, err := q.QP.PostRecv(wrs)
	for _, c := range q.each() {
		c.recvCalls.Add(1)
		c.recvs.Add(uint64(n))
		if err != nil {
			c.recvsRefused.Add(1)
		}
	}
	if q.provider.sink == nil {
		return n, err
	}
	for i := range wrs[:n] {
		bytes := 0
		for _, s := range wrs[i].Local {
			bytes += len(s.Mem)
		}
		q.provider.tell(Event{Kind: Received, QP: q.name, ID: wrs[i].ID, Bytes: bytes})
	}
	if err != nil {
		q.provider.tell(Event{Kind: Refused, QP: q.name, Err: err})
	}
	return n, err
}

func (q *queuePair) Modify(ctx context.Context, to driver.State, attr driver.Attr) error {
	err := q.QP.Modify(ctx, to, attr)
	q.provider.tell(Event{Kind: Modified, QP: q.name, State: to, Err: err})
	return err
}

// A tracedMapper counts the maps of a QP that can map.
type tracedMapper struct {
	mapper driver.Mapper
	qp     *queuePair
}

func (m tracedMapper) Map(ctx context.Context, remote driver.RemoteAddr, n int, access driver.Access) ([]byte, error) {
	mem, err := m.mapper.Map(ctx, remote, n, access)
	for _, c := range m.qp.each() {
		c.maps.Add(1)
	}
	m.qp.provider.tell(Event{Kind: Mapped, QP: m.qp.name, Bytes: n, Addr: remote.Addr, Err: err})
	return mem, err
}

func (m tracedMapper) PeerBell() wait.Ringer { return m.mapper.PeerBell() }

// A tracedCanceler counts the cancels of a QP that can cancel.
type tracedCanceler struct {
	canceler driver.Canceler
	qp       *queuePair
}

func (c tracedCanceler) Cancel(id uint64) {
	c.canceler.Cancel(id)
	for _, counts := range c.qp.each() {
		counts.cancels.Add(1)
	}
	c.qp.provider.tell(Event{Kind: Canceled, QP: c.qp.name, ID: id})
}
