//go:build linux

package shm

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// PostSend executes the requests, or queues them behind one that waits.
func (q *QP) PostSend(wrs []driver.WorkRequest) (int, error) {
	q.mu.Lock()
	defer q.unlock()
	for i := range wrs {
		if err := q.post(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// post takes one request. Precondition of it and all below: mu is held.
func (q *QP) post(wr *driver.WorkRequest) error {
	switch {
	case q.closed:
		return fmt.Errorf("shm: QP %d: %w", q.num, driver.ErrClosed)
	case q.state == driver.StateErr:
		q.complete(q.sendCQ, driver.Completion{ID: wr.ID, Status: driver.Flushed, Op: wr.Op})
		return nil
	case q.state != driver.StateRTS || q.sends.Len() > 0:
		return q.enqueue(wr, 0)
	}
	sent := 0
	ok, err := q.attempt(wr, &sent)
	if !ok && err == nil {
		return q.enqueue(wr, sent)
	}
	q.stalled(false)
	if err != nil {
		q.complete(q.sendCQ, driver.Completion{ID: wr.ID, Status: statusOf(err), Op: wr.Op, Err: err})
		q.toErr(driver.Flushed, nil)
		return nil
	}
	q.succeed(wr)
	return nil
}

// enqueue makes wr wait; sent of its bytes are in the ring.
func (q *QP) enqueue(wr *driver.WorkRequest, sent int) error {
	r, err := q.sends.Push(wr)
	if err != nil {
		return fmt.Errorf("shm: %w: %d requests wait for the peer; poll completions, then post again", err, q.sends.Len())
	}
	r.Sent = sent
	return nil
}

// advance executes the queued requests in order, up to the first that must wait.
func (q *QP) advance() {
	for q.state == driver.StateRTS {
		r := q.sends.First()
		if r == nil {
			break
		}
		ok, err := q.attempt(&r.WorkRequest, &r.Sent)
		if !ok && err == nil {
			return
		}
		if err != nil {
			q.toErr(statusOf(err), err)
			return
		}
		if !r.Canceled {
			q.succeed(&r.WorkRequest)
		}
		q.sends.Pop()
	}
	if q.sends.Len() == 0 {
		q.stalled(false)
	}
}

// attempt executes wr and returns false when wr has to wait for the peer. The peer
// rings only where own.want is set, so attempt sets it before the last look
// (partner: QP.granted at the peer).
func (q *QP) attempt(wr *driver.WorkRequest, sent *int) (bool, error) {
	ok, err := q.execute(wr, sent)
	if ok || err != nil || q.wanting {
		return ok, err
	}
	q.stalled(true)
	return q.execute(wr, sent)
}

// execute does as much of wr as it can now and reports whether wr is done. An error
// is final.
func (q *QP) execute(wr *driver.WorkRequest, sent *int) (bool, error) {
	if !q.connected() {
		return false, nil
	}
	if q.work&1 == 0 { // set before the key is read, ended by unlock
		q.work++
		q.own.busy.Store(q.work)
	}
	if err := q.lost(); err != nil {
		return false, err
	}
	switch wr.Op {
	case driver.OpWrite:
		return q.orRequest(wr, sent, q.write(wr))
	case driver.OpRead:
		return q.orRequest(wr, sent, q.readRemote(wr))
	case driver.OpWriteImm:
		return q.writeImm(wr, sent)
	case driver.OpSend:
		return q.send(wr, sent)
	case driver.OpAccumulate:
		return q.orRequest(wr, sent, q.accumulate(wr))
	case driver.OpWriteBlocks:
		return q.orRequest(wr, sent, q.writeBlocks(wr))
	case driver.OpReadBlocks:
		return q.orRequest(wr, sent, q.readBlocks(wr))
	default:
		return q.orRequest(wr, sent, q.atomic(wr))
	}
}

// succeed completes wr if it is signaled.
func (q *QP) succeed(wr *driver.WorkRequest) {
	if wr.Flags&driver.Signaled == 0 {
		return
	}
	wc := driver.Completion{ID: wr.ID, Op: wr.Op}
	if wr.Op == driver.OpRead || wr.Op == driver.OpReadBlocks {
		wc.Bytes = wr.Length()
	}
	q.complete(q.sendCQ, wc)
}

// send puts a message, or the next piece of it, into the ring.
func (q *QP) send(wr *driver.WorkRequest, sent *int) (bool, error) {
	total := wr.Length()
	if *sent == 0 {
		if ok, err := q.credit(); !ok || err != nil {
			return false, err
		}
		if room := q.remote.lengths.load(q.messages); uint64(total) > room {
			return q.sendTooBig(total, room)
		}
	}
	for {
		free, err := q.room()
		if free == 0 || err != nil {
			return false, err
		}
		n := min(uint64(total-*sent), free*line-recordHeader, q.out.contiguous(q.out.lines)-recordHeader, q.out.size/4)
		if *sent == 0 {
			q.messages++
		}
		wq.Gather(q.out.data(q.out.lines, n), wr.Local, *sent)
		*sent += int(n)
		q.publish(record{kind: recordData, last: *sent == total, bytes: n})
		if *sent == total {
			return true, nil
		}
	}
}

// sendTooBig makes the peer's receive fail as well.
func (q *QP) sendTooBig(total int, room uint64) (bool, error) {
	free, err := q.room()
	if free == 0 || err != nil {
		return false, err
	}
	q.messages++
	q.publish(record{kind: recordTooBig, last: true})
	return false, fail(driver.RemoteInvalid,
		fmt.Errorf("%w: a message of %d bytes for a receive of %d", driver.ErrInvalid, total, room))
}

// publish hands a record to the peer.
func (q *QP) publish(rec record) {
	q.out.put(rec)
	q.own.head.Store(q.out.lines)
	q.tellPeer()
}

// credit reports whether the peer has a receive for the next message. It checks the
// count, which lies in memory that the peer writes.
func (q *QP) credit() (bool, error) {
	if q.messages < q.credits {
		return true, nil
	}
	posted := q.remote.block.posted.Load()
	if posted-q.messages > q.remote.lengths.size {
		return false, q.lostOr(corrupt("%d receives posted, %d used", posted, q.messages))
	}
	q.credits = posted
	return q.messages < q.credits, nil
}

// room returns how many lines of the ring are free for a message or a request to the peer's
// CPU. The reserve is for a response to a request of the peer, so that no response waits for room.
func (q *QP) room() (uint64, error) {
	free, err := q.free()
	if reserve := q.out.reserve(); free > reserve {
		return free - reserve, err
	}
	return 0, err
}

// free returns how many lines of the ring are free, and commits the ring at the first
// call. It checks the count, which lies in memory that the peer writes.
func (q *QP) free() (uint64, error) {
	if !q.ringThere {
		if err := q.ctx.control.Commit(int64(q.out.block)+ringStart, int64(q.out.size)); err != nil {
			return 0, fail(driver.GeneralError, err)
		}
		q.ringThere = true
	}
	if free := q.out.capacity() - (q.out.lines - q.taken); free >= q.out.capacity()/2 {
		return free, nil
	}
	taken := q.remote.block.taken.Load()
	if q.out.lines-taken > q.out.lines-q.taken {
		return 0, q.lostOr(corrupt("%d lines taken of %d", taken, q.out.lines))
	}
	q.taken = taken
	return q.out.capacity() - (q.out.lines - q.taken), nil
}

// lostOr returns an error for a reset of the peer, if there was one, else err: a reset
// zeroes the peer's counters.
func (q *QP) lostOr(err error) error {
	if lost := q.lost(); lost != nil {
		return lost
	}
	return err
}

// Cancel gives back the memory of the oldest request with this id, if it still waits.
// It then goes on with the requests behind it.
func (q *QP) Cancel(id uint64) {
	q.mu.Lock()
	defer q.unlock()
	if op, ok := q.sends.Cancel(id); ok {
		q.complete(q.sendCQ, driver.Completion{ID: id, Status: driver.Canceled, Op: op})
		q.advance()
	}
}
