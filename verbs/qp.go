package verbs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// QPConfig sizes a queue pair. A RecvDepth of 0 makes one that only sends.
type QPConfig struct {
	SendCQ, RecvCQ       *CQ  // may be the same
	SendDepth, RecvDepth int  // work requests outstanding
	MaxSegments          int  // of one work request; 0 means 1
	MaxInline            int  // bytes of one inline work request
	Apart                bool // give it a connection of its own, on devices that know connections; both ends do
	// Serial: the caller makes one call of PostSend, Modify to RESET or Close at a time, as with a
	// thread domain of ibverbs (ibv_alloc_td). PostSend then takes no lock of the QP's own.
	Serial bool
}

// A QP is one reliable connection to one peer.
type QP struct {
	pd  *PD
	drv driver.QP
	cfg QPConfig
	num uint32

	state  atomic.Uint64 // life<<8 | State; a life ends with RESET
	closed atomic.Bool
	modMu  sync.Mutex // one transition at a time

	sendMu sync.Mutex // keeps the order of slots and of posts the same; not taken if the caller does
	sends  sendDepth
	recvMu sync.Mutex
	recvs  recvDepth
}

// CreateQP makes a queue pair in RESET. It is local.
func (p *PD) CreateQP(ctx context.Context, cfg QPConfig) (*QP, error) {
	const op = "create QP"
	cfg.MaxSegments = max(cfg.MaxSegments, 1)
	if err := p.checkConfig(cfg); err != nil {
		return nil, p.ctx.fail(op, 0, err)
	}
	if err := p.holdAll(cfg); err != nil {
		return nil, p.ctx.fail(op, 0, err)
	}
	drv, err := p.ctx.drv.CreateQP(ctx, driver.QPConfig{
		SendCQ: cfg.SendCQ.drv, RecvCQ: cfg.RecvCQ.drv,
		SendDepth: cfg.SendDepth, RecvDepth: cfg.RecvDepth,
		MaxSegments: cfg.MaxSegments, MaxInline: cfg.MaxInline, Apart: cfg.Apart,
	})
	if err != nil {
		p.releaseAll(cfg)
		return nil, p.ctx.fail(op, 0, err)
	}
	q := &QP{pd: p, drv: drv, cfg: cfg, num: drv.Num()}
	q.sends.init(cfg.SendDepth)
	q.recvs.depth = cfg.RecvDepth
	p.ctx.addQP(q)
	return q, nil
}

// checkConfig compares a configuration with the limits of the device.
func (p *PD) checkConfig(cfg QPConfig) error {
	info := &p.ctx.info
	switch {
	case p.ctx.closed.Load():
		return driver.ErrClosed
	case cfg.SendCQ == nil || cfg.RecvCQ == nil || cfg.SendCQ.ctx != p.ctx || cfg.RecvCQ.ctx != p.ctx:
		return invalid("a QP needs two CQs of its own context, which may be the same")
	case cfg.SendDepth < 1 || cfg.SendDepth > info.MaxQPDepth:
		return invalid("send depth %d, the device takes 1 to %d", cfg.SendDepth, info.MaxQPDepth)
	case cfg.RecvDepth < 0 || cfg.RecvDepth > info.MaxQPDepth:
		return invalid("receive depth %d, the device takes 0 to %d", cfg.RecvDepth, info.MaxQPDepth)
	case cfg.MaxSegments > info.MaxSegments:
		return invalid("%d segments, the device takes %d", cfg.MaxSegments, info.MaxSegments)
	case cfg.MaxInline < 0 || cfg.MaxInline > info.MaxInline:
		return invalid("%d bytes inline, the device takes 0 to %d", cfg.MaxInline, info.MaxInline)
	}
	return nil
}

// holdAll counts the QP as a user of its PD and both CQs, or of none of them.
func (p *PD) holdAll(cfg QPConfig) error {
	if err := p.hold(); err != nil {
		return err
	}
	if err := cfg.SendCQ.hold(); err != nil {
		p.release()
		return err
	}
	if err := cfg.RecvCQ.hold(); err != nil {
		cfg.SendCQ.release()
		p.release()
		return err
	}
	return nil
}

func (p *PD) releaseAll(cfg QPConfig) {
	cfg.RecvCQ.release()
	cfg.SendCQ.release()
	p.release()
}

// Num identifies the QP in completions of its context.
func (q *QP) Num() uint32 { return q.num }

// State returns the state as far as this side has seen: a failure shows once
// its completion was polled or its event delivered.
func (q *QP) State() State { return State(q.state.Load() & 0xff) }

// life counts the resets.
func (q *QP) life() uint32 { return uint32(q.state.Load() >> 8) }

// pack returns the word that holds a state of the present life.
func (q *QP) pack(s State) uint64 { return uint64(q.life())<<8 | uint64(s) }

// Address returns the address that the peer passes to Connect. It may hold a
// secret: exchange it over an authenticated path only.
func (q *QP) Address() []byte { return q.drv.Address() }

// Modify moves the QP to another state. ERR flushes everything outstanding;
// RESET forgets it, together with completions that were not polled yet. A
// goroutine that polls during a RESET may still get a completion from before:
// poll the QP's completions until they are flushed, or pause polling, then
// reset.
//
// Errors: driver.ErrState for a transition that does not exist, and the
// provider's errors on the way to RTR and RTS.
func (q *QP) Modify(ctx context.Context, to State, attr Attr) error {
	const op = "modify"
	q.modMu.Lock()
	defer q.modMu.Unlock()
	if q.closed.Load() {
		return q.pd.ctx.fail(op, q.num, driver.ErrClosed)
	}
	from := q.State()
	if err := checkTransition(from, to, attr); err != nil {
		return q.pd.ctx.fail(op, q.num, err)
	}
	if to == StateReset {
		return q.pd.ctx.fail(op, q.num, q.reset(ctx, attr))
	}
	if err := q.drv.Modify(ctx, to, attr); err != nil {
		return q.pd.ctx.fail(op, q.num, err)
	}
	if to == StateErr {
		q.broke(q.life())
		q.state.Store(q.pack(StateErr))
		return nil
	}
	if !q.state.CompareAndSwap(q.pack(from), q.pack(to)) {
		return q.pd.ctx.fail(op, q.num, stateError("the QP broke on its way from %v to %v", from, to))
	}
	return nil
}

// reset holds both locks, so that no post slips in between.
func (q *QP) reset(ctx context.Context, attr Attr) error {
	q.lockSends()
	defer q.unlockSends()
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	if err := q.drv.Modify(ctx, StateReset, attr); err != nil {
		return err
	}
	q.state.Store(uint64(q.life()+1) << 8) // RESET is 0
	q.sends.reset()
	q.recvs.reset()
	return nil
}

// Connect takes the QP from RESET or INIT to RTS and connects it to the QP with
// the address peer. It is local: the peer connects as well, in any order.
// timeout bounds how long the peer may show no sign of life; 0 takes the
// provider's default.
func (q *QP) Connect(ctx context.Context, peer []byte, timeout time.Duration) error {
	return q.ConnectWith(ctx, Attr{Peer: peer, Timeout: timeout})
}

// ConnectWith is Connect with all that the transitions take.
func (q *QP) ConnectWith(ctx context.Context, attr Attr) error {
	if q.State() != StateInit {
		if err := q.Modify(ctx, StateInit, Attr{}); err != nil {
			return err
		}
	}
	if err := q.Modify(ctx, StateRTR, attr); err != nil {
		return err
	}
	return q.Modify(ctx, StateRTS, attr)
}

// lockSends takes the lock of posts, unless the caller makes one at a time.
func (q *QP) lockSends() {
	if !q.cfg.Serial {
		q.sendMu.Lock()
	}
}

func (q *QP) unlockSends() {
	if !q.cfg.Serial {
		q.sendMu.Unlock()
	}
}

// Close destroys the QP; outstanding requests do not complete. It is
// idempotent.
func (q *QP) Close() error {
	q.modMu.Lock()
	defer q.modMu.Unlock()
	if q.closed.Swap(true) {
		return nil
	}
	q.lockSends()
	defer q.unlockSends()
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	err := q.drv.Close()
	q.pd.ctx.dropQP(q.num)
	q.pd.releaseAll(q.cfg)
	return q.pd.ctx.fail("close QP", q.num, err)
}
