//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// Modify changes the state. Only SQD waits, for requests under way.
func (q *qp) Modify(ctx context.Context, to driver.State, attr driver.Attr) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch to {
	case driver.StateReset:
		return q.reset()
	case driver.StateErr:
		return q.toErr()
	}
	if err := q.advance(to, attr); err != nil || to != driver.StateSQD {
		return err
	}
	return q.awaitDrained(ctx)
}

// advance makes a transition on the way from RESET to RTS and SQD.
func (q *qp) advance(to driver.State, attr driver.Attr) error {
	q.post.Lock()
	defer q.post.Unlock()
	if q.hw == nil {
		return driver.ErrClosed
	}
	from := q.getState()
	if err := wq.Transition(from, to); err != nil {
		return err
	}
	var err error
	switch to {
	case driver.StateInit:
		err = q.toInit()
	case driver.StateRTR:
		err = q.toRTR(attr.Peer)
	case driver.StateRTS:
		err = q.toRTS(from, attr.Timeout)
	case driver.StateSQD:
		err = q.markEnd()
	}
	if err == nil {
		err = q.setState(from, to)
	}
	if err == nil && from == driver.StateSQD && to == driver.StateRTS {
		err = q.resume()
	}
	return err
}

// setState notes a transition that the device has made, unless an event has broken the queue pair
// meanwhile.
func (q *qp) setState(from, to driver.State) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != from {
		return fmt.Errorf("%w: the queue pair broke on its way from %v to %v", driver.ErrState, from, to)
	}
	q.state = to
	return nil
}

// getState returns the state as the provider knows it.
func (q *qp) getState() driver.State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// toInit takes the queue pair of the device to INIT.
func (q *qp) toInit() error {
	q.path.port = C.uint8_t(q.dev.hw.port)
	return wrap(errnoError(C.gopgas_to_init(q.hw, &q.path)), "to INIT")
}

// toRTR connects to the peer.
func (q *qp) toRTR(peer []byte) error {
	a, err := decodeAddress(peer)
	if err != nil {
		return err
	}
	hw := q.dev.hw
	if (a.link == linkEthernet) != hw.ethernet() {
		return badAddress("is of another link layer than %s", hw.detail())
	}
	q.path.gid, q.path.lid = flatGID(a.gid), C.uint16_t(a.lid)
	q.path.qpn, q.path.recv_psn = C.uint32_t(a.qpn), C.uint32_t(a.psn)
	q.path.mtu = C.uint8_t(min(a.mtu, hw.mtu))
	q.path.sgid_index = C.uint8_t(hw.gid.index)
	q.path.service_level, q.path.traffic_class = C.uint8_t(q.dev.cfg.ServiceLevel), C.uint8_t(q.dev.cfg.TrafficClass)
	q.path.responder_reads = C.uint8_t(hw.reads())
	q.path.initiator_reads = C.uint8_t(min(hw.initiatorReads(), a.reads))
	if err := errnoError(C.gopgas_to_rtr(q.hw, &q.path)); err != nil {
		return wrap(err, fmt.Sprintf("connecting to %v; is there a route from %v?", a.gid, hw.gid.gid))
	}
	return nil
}

// flatGID returns a GID as C takes it.
func flatGID(g gid) (flat [16]C.uint8_t) {
	for i := range g {
		flat[i] = C.uint8_t(g[i])
	}
	return flat
}

// toRTS opens the send queue.
func (q *qp) toRTS(from driver.State, timeout time.Duration) error {
	if timeout == 0 {
		timeout = q.dev.cfg.PeerTimeout
	}
	if from == driver.StateRTR {
		retries := q.dev.cfg.RetryCount
		q.path.timeout, q.path.retries = C.uint8_t(timeoutCode(timeout, retries)), C.uint8_t(retries)
		if err := errnoError(C.gopgas_to_rts(q.hw, &q.path)); err != nil {
			return wrap(err, "to RTS")
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.timeout = timeout
	}
	return nil
}

func (q *qp) toDevice(state C.int) error {
	return wrap(errnoError(C.gopgas_to_state(q.hw, state)), "changing a queue pair's state")
}
