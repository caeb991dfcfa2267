package verbs

import (
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// PostSend queues work requests in order and returns how many the provider
// took. If it refused one, the error says why. The requests take effect at the
// peer in order; READs and atomics may be passed by later ones without [Fence].
//
// Requests are one-sided but for OpSend and OpWriteImm, which consume a receive at the peer and
// wait for one. The caller polls completions from the send CQ. The memory of a request belongs to
// the provider until then, with [Inline] only until PostSend returns. The caller may change wrs and
// its segment slices when PostSend returns. A request without [Signaled] completes only on error.
// It keeps its slot until the completion of a later signaled request was polled.
//
// Errors: driver.ErrQueueFull (poll the send CQ, then post the remaining
// requests); driver.ErrState before RTS; driver.ErrInvalid and driver.ErrAccess
// for a request that breaks the rules.
func (q *QP) PostSend(wrs []WorkRequest) (int, error) {
	mutant.Hesitate(mutant.Operation)
	q.lockSends()
	n, err := q.admitSend(wrs)
	if n > 0 {
		q.sends.take(wrs[:n])
		taken, perr := q.drv.PostSend(wrs[:n])
		q.sends.untake(wrs[taken:n])
		if perr != nil {
			n, err = taken, perr
		}
	}
	q.unlockSends()
	if err != nil {
		return n, q.refuse("post send", n, err)
	}
	return n, nil
}

// admitSend returns how many of wrs the provider may see, and the error of the
// next one.
func (q *QP) admitSend(wrs []WorkRequest) (int, error) {
	if s := q.State(); !wq.TakesSends(s) || q.closed.Load() {
		return 0, q.notReady(s, "sends can be posted from RTS on")
	}
	room := q.sends.room()
	for i := range wrs {
		if i >= room {
			return i, driver.ErrQueueFull
		}
		if err := q.checkSend(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// PostRecv offers memory to SENDs and notices to WRITE_WITH_IMMs of the peer,
// in order. It returns how many requests the provider took. Each completes
// exactly once, to the receive CQ; until then its memory belongs to the
// provider.
//
// Errors: as PostSend; driver.ErrState before INIT.
func (q *QP) PostRecv(wrs []RecvRequest) (int, error) {
	q.recvMu.Lock()
	n, err := q.admitRecv(wrs)
	if n > 0 {
		q.recvs.used.Add(int64(n))
		taken, perr := q.drv.PostRecv(wrs[:n])
		q.recvs.used.Add(int64(taken - n))
		if perr != nil {
			n, err = taken, perr
		}
	}
	q.recvMu.Unlock()
	if err != nil {
		return n, q.refuse("post receive", n, err)
	}
	return n, nil
}

// admitRecv returns how many receives the provider may get, and why the next one may not go there.
func (q *QP) admitRecv(wrs []RecvRequest) (int, error) {
	if s := q.State(); !wq.TakesReceives(s) || q.closed.Load() {
		return 0, q.notReady(s, "receives can be posted from INIT on")
	}
	room := q.recvs.room()
	for i := range wrs {
		if i >= room {
			return i, driver.ErrQueueFull
		}
		if err := q.checkRecv(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// completed counts a completion before the caller of Poll sees it.
func (q *QP) completed(c *Completion) {
	switch {
	case c.Status == Canceled:
		q.sends.inexact.Store(true)
		q.recvs.inexact.Store(true)
	case c.Status != Success:
		q.broke(q.life())
	case c.Op == OpRecv || c.Op == OpRecvImm:
		q.recvs.used.Add(-1)
	default:
		q.sends.complete()
	}
}

// broke records that the provider moved the QP to ERR in the given life. It
// ignores events of an earlier life.
func (q *QP) broke(life uint32) {
	for {
		s := q.state.Load()
		if uint32(s>>8) != life || State(s&0xff) == StateReset {
			return
		}
		q.sends.inexact.Store(true)
		q.recvs.inexact.Store(true)
		if q.state.CompareAndSwap(s, q.pack(StateErr)) {
			return
		}
	}
}

// notReady returns the error of a post in a state that takes none.
func (q *QP) notReady(s State, hint string) error {
	if q.closed.Load() {
		return driver.ErrClosed
	}
	return stateError("%v; %s", s, hint)
}

// refuse names the device and the queue pair in the error of request index.
func (q *QP) refuse(op string, index int, err error) error {
	info := &q.pd.ctx.info
	return &OpError{Op: op, Provider: info.Provider, Device: info.Name, QP: q.num, Index: index, Err: err}
}
