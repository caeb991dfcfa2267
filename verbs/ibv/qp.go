//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	goruntime "runtime"
	"sync"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// A qp is one queue pair. Mutex post serializes posts to the device's send queue and all
// transitions, and recvPost posts to its receive queue. Mutex mu guards all other fields. No
// goroutine holds mu while it calls the device.
type qp struct {
	dev            *device
	num            uint32
	sendCQ, recvCQ *completionQueue

	post     sync.Mutex
	recvPost sync.Mutex
	hw       *C.struct_ibv_qp     // nil once closed; changed with post and recvPost held
	out      outgoing             // of post
	in       incoming             // of recvPost
	path     flatPath             // of post
	nextPSN  C.uint32_t           // of post: the first packet number after a reset; 0: not chosen
	life     uint32               // of post: resets so far
	held     []driver.WorkRequest // of post and mu: posted in SQD

	mu          sync.Mutex
	state       driver.State
	incarnation uint32
	sends       slots
	recvs       slots
	marker      bool          // the marker is posted and has not completed
	cause       driver.Status // of the next request that the device flushes; Success for none
	causeErr    error
	timeout     time.Duration // without a sign of life
	watch       watch
}

// newQP makes the Go side of a queue pair of the device, in RESET. Its incarnation tells its
// completions from those of a queue pair that had the same number.
func newQP(d *device, hw *C.struct_ibv_qp, send, recv *completionQueue, cfg driver.QPConfig) *qp {
	q := &qp{dev: d, num: uint32(hw.qp_num), sendCQ: send, recvCQ: recv, hw: hw, timeout: d.cfg.PeerTimeout}
	q.sends.Ring = wq.NewRing[slot](cfg.SendDepth)
	q.recvs.Ring = wq.NewRing[slot](cfg.RecvDepth)
	q.out = newOutgoing(cfg)
	q.in = newIncoming(cfg)
	q.incarnation = d.incarnations.Add(1)
	q.path.send_psn = newPSN()
	return q
}

func (q *qp) Num() uint32 { return q.num }

// Address returns the address of this incarnation; a reset makes a new one.
func (q *qp) Address() []byte {
	q.post.Lock()
	defer q.post.Unlock()
	hw := q.dev.hw
	a := address{mtu: hw.mtu, reads: hw.reads(), qpn: q.num, psn: uint32(q.path.send_psn),
		lid: uint16(hw.portAt.lid), link: linkInfiniBand, gid: hw.gid.gid}
	if hw.ethernet() {
		a.link, a.lid = linkEthernet, 0
	}
	return a.encode()
}

// reset forgets peer, requests and completions.
func (q *qp) reset() error {
	defer lockQueues(q.sendCQ, q.recvCQ)()
	if err := q.resetDevice(); err != nil {
		return err
	}
	q.sendCQ.purge(q.num)
	q.recvCQ.purge(q.num)
	return nil
}

// resetDevice moves the device's queue pair to RESET and forgets all requests. The next connection
// begins at another packet number: late packets of this one do not fit (ADR 68).
func (q *qp) resetDevice() error {
	q.lockPosts()
	defer q.unlockPosts()
	if q.hw == nil {
		return driver.ErrClosed
	}
	if err := q.clear(); err != nil {
		return err
	}
	q.path.send_psn, q.nextPSN = q.nextPSN, 0
	q.life++
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget(driver.StateReset)
	return nil
}

// forget starts a new incarnation.
func (q *qp) forget(state driver.State) {
	q.state, q.incarnation = state, q.dev.incarnations.Add(1)
	q.sends.reset()
	q.recvs.reset()
	q.cause, q.causeErr, q.marker, q.watch = driver.Success, nil, false, watch{}
	q.held = nil
}

// Close destroys the queue pair. Outstanding requests do not complete, and the
// device does not touch their memory any more. It is idempotent.
func (q *qp) Close() error {
	defer lockQueues(q.sendCQ, q.recvCQ)()
	if known, err := q.destroy(); !known || err != nil {
		return err
	}
	for _, c := range [...]*completionQueue{q.sendCQ, q.recvCQ} {
		delete(c.qps, q.num)
		c.last = nil
		c.purge(q.num)
	}
	return nil
}

// destroy reports whether the queue pair still existed.
func (q *qp) destroy() (bool, error) {
	q.lockPosts()
	defer q.unlockPosts()
	if q.hw == nil {
		return false, nil
	}
	if rc := C.ibv_destroy_qp(q.hw); rc != 0 {
		return true, wrap(errnoError(rc), "destroying a queue pair")
	}
	q.hw = nil
	q.out.pins.Unpin()
	q.dev.mu.Lock()
	if q.dev.qps[q.num] == q { // the device may have used the number again
		delete(q.dev.qps, q.num)
	}
	q.dev.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget(driver.StateErr)
	return true, nil
}

// lockPosts keeps all posts out.
func (q *qp) lockPosts() {
	q.post.Lock()
	q.recvPost.Lock()
}

// unlockPosts lets posts in again.
func (q *qp) unlockPosts() {
	q.recvPost.Unlock()
	q.post.Unlock()
}

// outgoing holds the arrays that PostSend fills for the device.
type outgoing struct {
	requests []flatSend
	segments []flatSegment
	inline   []byte // copies of inline data, pinned; made on first use
	largest  int    // inline bytes of one request
	pins     goruntime.Pinner
}

// inlineSpace bounds the bytes of inline data that cross into C at once. One
// request may take more.
const inlineSpace = 4 << 10

// newOutgoing returns the memory for a chain of sends.
func newOutgoing(cfg driver.QPConfig) outgoing {
	n := min(batch, cfg.SendDepth)
	return outgoing{requests: make([]flatSend, n), segments: make([]flatSegment, n*cfg.MaxSegments), largest: cfg.MaxInline}
}

// inlineBuffer returns pinned memory for the bytes of inline requests.
func (o *outgoing) inlineBuffer() []byte {
	if o.inline == nil {
		o.inline = make([]byte, max(inlineSpace, o.largest))
		o.pins.Pin(&o.inline[0])
	}
	return o.inline
}

// An incoming is the memory in which a chain of receives is built. The queue pair owns it, so that
// a post allocates nothing.
type incoming struct {
	requests []flatRecv
	segments []flatSegment
}

// newIncoming returns the memory for a chain of receives.
func newIncoming(cfg driver.QPConfig) incoming {
	n := max(1, min(batch, cfg.RecvDepth))
	return incoming{requests: make([]flatRecv, n), segments: make([]flatSegment, n*cfg.MaxSegments)}
}
