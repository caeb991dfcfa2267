//go:build linux

package shm

import (
	"context"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// QP is one connection. It writes to its block and never reads it back.
type QP struct {
	ctx            *Context
	num, index     uint32
	nonce          uint64
	address        []byte
	sendCQ, recvCQ *CQ
	own            *block
	lengths        lengthList // in own block
	out            ring       // in own block
	ringThere      bool       // out is committed; under mu

	mu     sync.Mutex // guards the fields below
	state  driver.State
	life   wq.Life
	closed bool
	epoch  uint64
	work   uint64    // the value of own.busy
	remote *remoteQP // from RTR to RESET
	expect uint64    // conn word of the peer while connected, else 0

	sends     wq.SendQueue
	requested int    // bytes of the first of sends that the peer's CPU has yet to move, 0: none requested
	got       int    // bytes of the response that have arrived
	scratch   []byte // of a request of the peer
	result    []byte // of it
	wanting   bool   // own.want is set, and this QP counted in ctx.stalled
	taken     uint64 // lines that the peer took from out, as last seen
	credits   uint64 // receives that the peer posted, as last seen
	messages  uint64 // messages begun: each used a receive of the peer

	receives wq.RecvQueue
	read     uint64 // lines taken from the peer's ring
	partial  int    // bytes of the message that is arriving
	posted   uint64 // receives ever posted

	wakeSelf bool       // ring the own bell after mu is released
	wakePeer *wait.Bell // ring this bell after mu is released, too

}

// remoteQP locates the peer's QP.
type remoteQP struct {
	*address
	peer    *peer
	block   *block
	lengths lengthList
	ring    ring
	bell    *wait.Bell
}

// CreateQP takes a block of the control memfd.
func (c *Context) CreateQP(_ context.Context, cfg driver.QPConfig) (driver.QP, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("shm: %w", driver.ErrClosed)
	}
	index, epoch, err := c.blocks.take()
	if err != nil {
		return nil, err
	}
	q := &QP{
		ctx: c, index: index, nonce: randomWord(), epoch: epoch,
		sendCQ: cfg.SendCQ.(*CQ), recvCQ: cfg.RecvCQ.(*CQ),
		sends: wq.NewSendQueue(cfg.SendDepth), receives: wq.NewRecvQueue(cfg.RecvDepth, cfg.MaxSegments),
	}
	if err := q.place(); err != nil {
		c.blocks.giveBack(index, epoch, true)
		return nil, fmt.Errorf("shm: QP: %w", err)
	}
	c.nextQP++
	q.num = c.nextQP
	c.qps[index].Store(q)
	return q, nil
}

// place commits the block, publishes the QP there and makes its address. The first
// message commits the ring (see room): most QPs never send one. Precondition: ctx.mu is held.
func (q *QP) place() error {
	c := q.ctx
	depth := powerOfTwo(q.receives.Depth())
	offset := uint64(blocksOffset(c.cfg)) + uint64(q.index)*uint64(blockSize(c.cfg.RingBytes))
	if err := c.control.Commit(int64(offset), int64(lengthsStart+8*depth)); err != nil {
		return err
	}
	mem := c.control.Bytes()
	q.own = blockAt(mem, offset)
	q.lengths = lengthsAt(mem, offset, uint32(depth))
	q.out = ringAt(mem, offset, uint32(c.cfg.RingBytes))
	q.own.nonce.Store(q.nonce)
	q.reset()

	a := c.where()
	a.index, a.block, a.receives, a.nonce = q.index, offset, uint32(depth), q.nonce
	q.address = a.encode()
	return nil
}

// powerOfTwo rounds up.
func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// Num returns the QP's number, which is unique in the context.
func (q *QP) Num() uint32 { return q.num }

// Address returns the QP's address. It holds tokens: a process of the same user
// that knows them can connect.
func (q *QP) Address() []byte { return append([]byte(nil), q.address...) }

// Modify moves the QP; see connect.go for RTR. RESET waits for the request that
// the peer is executing; other transitions do not block.
func (q *QP) Modify(ctx context.Context, to driver.State, attr driver.Attr) error {
	if to != driver.StateReset {
		return q.modify(to, attr)
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return fmt.Errorf("shm: QP %d: %w", q.num, driver.ErrClosed)
	}
	remote := q.remote
	q.epoch++
	q.life.End()
	q.reset()
	last := q.ctx.unfinished.add(remote)
	q.unlock()
	return q.ctx.quiesce(ctx, last)
}

// modify makes a transition to a state other than RESET.
func (q *QP) modify(to driver.State, attr driver.Attr) error {
	q.mu.Lock()
	defer q.unlock()
	if q.closed {
		return fmt.Errorf("shm: QP %d: %w", q.num, driver.ErrClosed)
	}
	if err := wq.Transition(q.state, to); err != nil {
		return fmt.Errorf("shm: QP %d: %w", q.num, err)
	}
	switch to {
	case driver.StateErr:
		q.toErr(driver.Flushed, nil)
	case driver.StateRTR:
		return q.connect(attr.Peer)
	case driver.StateRTS:
		q.state = to
		q.advance()
	default:
		q.state = to
	}
	return nil
}

// reset forgets connection and requests. It first stores the word that ends the
// old connection, so that no peer takes new counters for old ones.
func (q *QP) reset() {
	q.own.conn.Store(connWord(q.epoch, phaseDown))
	q.tellPeer()
	q.own.bound.Store(0)
	q.own.head.Store(0)
	q.own.taken.Store(0)
	q.own.posted.Store(0)
	q.stalled(false)
	q.out.lines = 0
	q.taken, q.credits, q.messages = 0, 0, 0
	q.read, q.partial, q.posted = 0, 0, 0
	q.remote, q.expect = nil, 0
	q.requested, q.got = 0, 0
	q.sends.Clear()
	q.receives.Clear()
	q.state = driver.StateReset
}

// toErr flushes everything posted, the oldest send with status and cause, and
// tells the peer.
func (q *QP) toErr(status driver.Status, cause error) {
	if q.state == driver.StateErr {
		return
	}
	q.state = driver.StateErr
	q.stalled(false)
	q.own.conn.Store(connWord(q.epoch, phaseErr))
	q.tellPeer()
	q.sends.Flush(status, cause, func(wc driver.Completion) { q.complete(q.sendCQ, wc) })
	q.receives.Flush(func(wc driver.Completion) { q.complete(q.recvCQ, wc) })
}

func (q *QP) complete(cq *CQ, wc driver.Completion) {
	wc.QP = q.num
	cq.Push(&wc, &q.life)
	q.wakeSelf = true
}

// unlock releases mu and then rings the bells that are due: a futex call under the
// lock would delay other posters.
func (q *QP) unlock() {
	if q.work&1 != 0 {
		q.work++
		q.own.busy.Store(q.work)
		q.wakePeer = q.remote.bell // the peer may wait for the end of the request
	}
	self, other := q.wakeSelf, q.wakePeer
	q.wakeSelf, q.wakePeer = false, nil
	q.mu.Unlock()
	if other != nil {
		other.Ring()
	}
	if self {
		q.ctx.ring()
	}
}

// Close drops everything posted without completions. It waits for a request of this QP that another
// goroutine is executing, since that goroutine holds mu: no such request touches memory behind Close. Then
// it waits for the request that the peer is executing. If the peer is stopped, Close returns an error after
// patience, and the request still counts: MR.Close waits for it. Messages that were sent stay readable for the peer.
func (q *QP) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	q.state = driver.StateErr
	q.stalled(false)
	q.own.conn.Store(connWord(q.epoch, phaseClosed))
	q.tellPeer()
	q.sends.Clear()
	q.receives.Clear()
	c, remote := q.ctx, q.remote
	read := q.out.lines == 0 || remote.block.taken.Load() == q.out.lines
	last := c.unfinished.add(remote)
	q.unlock()

	err := c.quiesce(c.life, last)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.qps[q.index].Store(nil)
	c.blocks.giveBack(q.index, q.epoch, read)
	return err
}
