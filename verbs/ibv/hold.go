//go:build ibverbs

package ibv

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// In SQD the device stays in RTS, and the provider keeps new requests. Not
// every device can drain, and soft ones do not leave SQD again.

// drainLook is the time between two checks of a queue pair on its way to SQD.
const drainLook = time.Millisecond

// awaitDrained returns once the device holds no request.
func (q *qp) awaitDrained(ctx context.Context) error {
	ticker := time.NewTicker(drainLook)
	defer ticker.Stop()
	for {
		q.sendCQ.harvestFor()
		if drained, err := q.drained(); drained || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drained reports whether the device holds no send any more. It returns an error if the queue pair has
// left SQD.
func (q *qp) drained() (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != driver.StateSQD {
		return false, fmt.Errorf("%w: %v; the queue pair left SQD before it was drained", driver.ErrState, q.state)
	}
	return q.sends.owned == 0, nil
}

// hold keeps requests until the queue pair is in RTS again. Precondition: post
// and mu are held.
func (q *qp) hold(wrs []driver.WorkRequest) (n int, err error) {
	most := min(len(wrs), q.sends.Room())
	for ; n < most; n++ {
		if err = q.check(&wrs[n], len(q.out.segments)); err != nil {
			break
		}
		wr := wrs[n]
		wr.Local = slices.Clone(wr.Local)
		for i := range wr.Local {
			if wr.Flags&driver.Inline != 0 {
				wr.Local[i].Mem = bytes.Clone(wr.Local[i].Mem)
			}
		}
		q.held = append(q.held, wr)
		*q.sends.Push() = slot{id: wr.ID, op: wr.Op}
	}
	if n > 0 {
		err = nil // the next call returns the error again
	}
	return n, err
}

// resume posts the held requests. Precondition: post is held, in RTS.
func (q *qp) resume() error {
	held := q.held
	q.held = nil
	q.mu.Lock()
	broke := q.state != driver.StateRTS
	if !broke { // else the next Poll flushes them
		q.sends.Unpush(len(held))
	}
	q.mu.Unlock()
	for !broke && len(held) > 0 {
		n, err := q.postChain(held)
		if held = held[n:]; err != nil {
			return q.refused(held, err)
		}
	}
	return nil
}

// refused breaks the queue pair because the device refuses requests that
// PostSend had taken.
func (q *qp) refused(wrs []driver.WorkRequest, cause error) error {
	q.mu.Lock()
	q.state, q.cause, q.causeErr = driver.StateErr, driver.GeneralError, cause
	for i := range wrs {
		*q.sends.Push() = slot{id: wrs[i].ID, op: wrs[i].Op}
	}
	q.mu.Unlock()
	if err := q.drain(); err != nil {
		return err
	}
	return cause
}
