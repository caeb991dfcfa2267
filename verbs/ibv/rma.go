//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// PostSend hands requests to the device in chains: one call into C, and on
// hardware one doorbell, for each. In ERR they stay in the provider's own queue.
func (q *qp) PostSend(wrs []driver.WorkRequest) (int, error) {
	q.post.Lock()
	defer q.post.Unlock()
	done := 0
	for done < len(wrs) {
		n, err := q.postChain(wrs[done:])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// postChain posts as many of wrs as fit a chain. It returns an error only where
// it took none.
func (q *qp) postChain(wrs []driver.WorkRequest) (int, error) {
	n, segments, signaled, err := q.admit(wrs)
	if n == 0 || segments < 0 {
		return n, err
	}
	taken, err := postSend(q.hw, q.out.requests[:n], q.out.segments[:segments])
	if taken < n {
		q.mu.Lock()
		q.sends.untake(n - taken)
		q.mu.Unlock()
	}
	if signaled {
		q.dev.watchOver()
	}
	return taken, postError(err)
}

// postError returns the driver's error for a device's refusal.
func postError(err error) error {
	switch {
	case errors.Is(err, unix.ENOMEM):
		return driver.ErrQueueFull
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: the device refuses the request", driver.ErrInvalid)
	}
	return wrap(err, "posting")
}

// admit fills the outgoing chain and takes slots for it. In SQD and ERR no
// request goes to the device: segments is negative then.
func (q *qp) admit(wrs []driver.WorkRequest) (n, segments int, signaled bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.maySend(); err != nil {
		return 0, 0, false, err
	}
	switch q.state {
	case driver.StateErr:
		segments = -1
		n = min(len(wrs), q.sends.Room())
		for i := range wrs[:n] {
			*q.sends.Push() = slot{id: wrs[i].ID, op: wrs[i].Op}
		}
		q.flushIfDue(&q.sends, q.sendCQ)
	case driver.StateSQD:
		segments = -1
		n, err = q.hold(wrs)
	default:
		n, segments, signaled, err = q.chain(wrs)
	}
	if n == 0 && err == nil {
		err = driver.ErrQueueFull
	}
	return n, segments, signaled, err
}

// maySend returns why no send can be posted, nil if one can.
func (q *qp) maySend() error {
	switch {
	case q.hw == nil:
		return driver.ErrClosed
	case !wq.TakesSends(q.state):
		return fmt.Errorf("%w: %v; sends can be posted from RTS on", driver.ErrState, q.state)
	}
	return nil
}

// chain builds a chain of as many requests as fit in the slots, the segments and the inline space.
// It ends ahead of a request that is malformed, which the next call refuses. signaled reports
// whether one of them yields a completion.
func (q *qp) chain(wrs []driver.WorkRequest) (n, segments int, signaled bool, err error) {
	most := min(len(wrs), len(q.out.requests), q.sends.Room())
	inline := 0
	for ; n < most; n++ {
		wr := &wrs[n]
		if wr.Flags&driver.Inline != 0 {
			if need := inline + wr.Length(); n > 0 && need > inlineSpace {
				break
			}
		}
		if err = q.check(wr, len(q.out.segments)-segments); err != nil {
			break
		}
		r := &q.out.requests[n]
		*r = flatSend{
			id: C.uint64_t(requestID(q.incarnation, kindSend, q.sends.next())),
			op: opcodes[wr.Op], flags: sendFlags(wr.Flags), imm: C.uint32_t(wr.Imm),
			remote: C.uint64_t(wr.Remote.Addr), rkey: C.uint32_t(wr.Remote.RKey.Lo),
		}
		setOperands(r, wr)
		length := q.gather(wr, r, segments, &inline)
		segments += int(r.segments)
		signaled = signaled || wr.Flags&driver.Signaled != 0
		*q.sends.Push() = slot{id: wr.ID, op: wr.Op, signaled: wr.Flags&driver.Signaled != 0, bytes: length}
		q.sends.owned++
	}
	if n > 0 {
		err = nil // the next chain returns the error again
	}
	return n, segments, signaled, err
}

// check refuses requests that the device cannot express; package verbs has made
// all other checks.
func (q *qp) check(wr *driver.WorkRequest, segments int) error {
	switch {
	case int(wr.Op) >= len(opcodes) || wr.Op == 0:
		return fmt.Errorf("%w: %v", driver.ErrUnsupported, wr.Op)
	case wr.Remote.RKey.Lo > math.MaxUint32:
		return fmt.Errorf("%w: key %v is none of provider ibv's", driver.ErrAccess, wr.Remote.RKey)
	case len(wr.Local) > segments:
		return fmt.Errorf("%w: %d segments", driver.ErrInvalid, len(wr.Local))
	case wr.Flags&driver.Inline != 0 && wr.Length() > q.out.largest:
		return fmt.Errorf("%w: %d bytes inline, this queue pair takes %d", driver.ErrInvalid, wr.Length(), q.out.largest)
	}
	return nil
}

// gather describes the local memory of wr. It copies inline data first, since
// that may lie anywhere in the Go heap. It leaves out empty segments: to some
// devices a length of 0 means 2 GiB.
func (q *qp) gather(wr *driver.WorkRequest, r *flatSend, at int, inline *int) (length int) {
	for i := range wr.Local {
		mem := wr.Local[i].Mem
		if len(mem) == 0 {
			continue
		}
		length += len(mem)
		if wr.Flags&driver.Inline != 0 {
			space := q.out.inlineBuffer()[*inline:]
			*inline += copy(space, mem)
			mem = space
		}
		q.out.segments[at] = flatSegment{addr: C.uint64_t(addressOf(mem)), length: C.uint32_t(len(wr.Local[i].Mem)), lkey: C.uint32_t(wr.Local[i].LKey.Lo)}
		at++
		r.segments++
	}
	return length
}
