//go:build linux

package shm

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// connect maps the peer and publishes that this QP is bound to it. Precondition
// of methods in this file that do not take mu: mu is held.
func (q *QP) connect(peer []byte) error {
	remote, err := q.ctx.remoteAt(peer)
	if err != nil {
		return fmt.Errorf("shm: QP %d: connecting: %w", q.num, err)
	}
	q.remote = remote
	if remote.peer.dead.Load() {
		q.remote = nil
		return fmt.Errorf("shm: QP %d: connecting: %w: process %d has ended", q.num, driver.ErrLost, remote.pid)
	}
	q.state = driver.StateRTR
	q.own.bound.Store(tag(remote.nonce, epochOf(remote.block.conn.Load())))
	q.own.conn.Store(connWord(q.epoch, phaseUp))
	q.tellPeer() // the peer's requests may wait for this QP
	q.connected()
	return nil
}

// remoteAt maps the control memory of the peer's process, and returns the QP that an address names
// there.
func (c *Context) remoteAt(peer []byte) (*remoteQP, error) {
	addr, err := decodeAddress(peer)
	if err != nil {
		return nil, err
	}
	p, bell, err := c.peerWith(addr)
	if err != nil {
		return nil, err
	}
	if addr.nonce == 0 {
		return nil, fmt.Errorf("%w: the address of a device, not of a QP", driver.ErrInvalid)
	}
	if err := c.startWatch(p); err != nil {
		return nil, err
	}
	mem := p.control.Bytes()
	r := &remoteQP{
		address: addr, peer: p, bell: bell,
		block:   blockAt(mem, addr.block),
		lengths: lengthsAt(mem, addr.block, addr.receives),
		ring:    ringAt(mem, addr.block, addr.ring),
	}
	if r.block.nonce.Load() != addr.nonce {
		return nil, fmt.Errorf("%w: the peer closed its QP", driver.ErrLost)
	}
	return r, nil
}

func (q *QP) peerQP() *remoteQP {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remote
}

// connected reports whether requests may start: both QPs are bound to each other.
// After a reset of the peer, this side waits until the peer is bound to this
// incarnation. It then binds itself to the peer's new epoch.
func (q *QP) connected() bool {
	if q.expect != 0 {
		return true
	}
	b := q.remote.block
	w := b.conn.Load()
	if phaseOf(w) == phaseDown || b.bound.Load() != tag(q.nonce, q.epoch) || b.conn.Load() != w {
		return false // the peer rings once it is bound
	}
	q.own.bound.Store(tag(q.remote.nonce, epochOf(w)))
	q.tellPeer()
	q.expect = connWord(epochOf(w), phaseUp) // even if the peer has left phaseUp by now: it may have sent messages
	return true
}

// lost returns the reason for which requests to a connected peer cannot succeed
// any more, or nil. It costs each request one load.
func (q *QP) lost() error {
	w := q.remote.block.conn.Load()
	if w == q.expect {
		return nil
	}
	reason := phaseOf(w).String()
	if epochOf(w) != epochOf(q.expect) {
		reason = phaseDown.String()
	}
	return fail(driver.RetryExceeded, fmt.Errorf("%w: the peer (process %d) %s", driver.ErrLost, q.remote.pid, reason))
}

// look reads the peer's block after the peer has rung the doorbell.
func (q *QP) look() {
	q.mu.Lock()
	defer q.unlock()
	if q.remote == nil || q.state == driver.StateErr || !q.connected() {
		return
	}
	if err := q.drain(); err != nil {
		q.breakDown(err)
		return
	}
	q.advance()
	w := q.remote.block.conn.Load()
	if p := phaseOf(w); epochOf(w) == epochOf(q.expect) && (p == phaseErr || p == phaseClosed) {
		q.breakDown(q.lost())
	}
}

// lookAfterDeath takes the messages that p had sent before it died.
func (q *QP) lookAfterDeath(p *peer) {
	q.mu.Lock()
	defer q.unlock()
	if q.remote == nil || q.remote.peer != p || q.state == driver.StateErr {
		return
	}
	err := fail(driver.RetryExceeded, fmt.Errorf("%w: process %d has ended", driver.ErrLost, p.id.pid))
	if q.connected() {
		if corrupt := q.drain(); corrupt != nil {
			err = corrupt
		}
	}
	q.breakDown(err)
}

// breakDown ends a connection for a reason that no request of this QP caused.
// It reports the reason to the first waiting request and to the rank.
func (q *QP) breakDown(err error) {
	if q.state == driver.StateErr {
		return
	}
	q.toErr(statusOf(err), err)
	q.ctx.event(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: q.life.Now(), Err: err})
}

// tellPeer rings the doorbell of the peer's QP, and its bell after unlock.
func (q *QP) tellPeer() {
	if q.remote == nil {
		return
	}
	q.remote.peer.doors.ring(q.remote.index)
	q.wakePeer = q.remote.bell
}

// failure is an error with the status that its completion carries.
type failure struct {
	status driver.Status
	err    error
}

func fail(status driver.Status, err error) error { return &failure{status, err} }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// statusOf returns the status of an error of this package, or of resolve.
func statusOf(err error) driver.Status {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.status
	case errors.Is(err, driver.ErrAccess), errors.Is(err, driver.ErrInvalid),
		errors.Is(err, memory.ErrUnsealed), errors.Is(err, memory.ErrTooSmall):
		return driver.RemoteAccess
	}
	return driver.RemoteOperation
}
