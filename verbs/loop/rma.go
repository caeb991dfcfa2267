package loop

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

var (
	_ driver.Mapper   = (*qp)(nil)
	_ driver.Canceler = (*qp)(nil)
)

// Operations on the memory of the peer p. The goroutine that posts carries them out (qp.attempt), under the lock of
// its own queue pair. The peer's region cannot close meanwhile.

// write copies the request's segments to the peer's memory.
func write(p *qp, wr *driver.WorkRequest) outcome {
	n := wr.Length()
	if n == 0 {
		return outcome{}
	}
	m, dst, err := p.ctx.keys.open(wr.Remote, n, driver.RemoteWrite)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	if n == 8 && len(wr.Local) == 1 && wr.Remote.Addr%8 == 0 {
		atomics.Word64(dst).Store(binary.NativeEndian.Uint64(wr.Local[0].Mem))
		return outcome{touched: true}
	}
	wq.Gather(dst, wr.Local, 0)
	return outcome{touched: true}
}

// read copies the peer's memory to the request's segments.
func read(p *qp, wr *driver.WorkRequest) outcome {
	n := wr.Length()
	if n == 0 {
		return outcome{}
	}
	m, src, err := p.ctx.keys.open(wr.Remote, n, driver.RemoteRead)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	if n <= driver.WholeRead && n%8 == 0 && len(wr.Local) == 1 && wr.Remote.Addr%8 == 0 {
		atomics.LoadWords(wr.Local[0].Mem, src)
		return outcome{bytes: n}
	}
	wq.Scatter(wr.Local, 0, src)
	return outcome{bytes: n}
}

// writeBlocks copies the request's segment to the peer's blocks.
func writeBlocks(p *qp, wr *driver.WorkRequest) outcome {
	from, to := wr.Extent()
	m, dst, err := p.ctx.keys.open(wr.Remote.Add(uint64(from)), to-from, driver.RemoteWrite)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	blocks.Unpack(dst, from, wr.Runs, wr.Local[0].Mem)
	return outcome{touched: true}
}

// readBlocks copies the peer's blocks to the request's segment.
func readBlocks(p *qp, wr *driver.WorkRequest) outcome {
	from, to := wr.Extent()
	m, src, err := p.ctx.keys.open(wr.Remote.Add(uint64(from)), to-from, driver.RemoteRead)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	blocks.Pack(wr.Local[0].Mem, src, from, wr.Runs)
	return outcome{bytes: wr.Length()}
}

// deliver gives a SEND or WRITE_WITH_IMM to the peer's oldest receive.
func (q *qp) deliver(p *qp, wr *driver.WorkRequest) outcome {
	p.recvMu.Lock()
	defer p.recvMu.Unlock()
	r := p.recvs.First()
	if r == nil {
		p.waiting.Store(true)
		if out := q.reach(p); out.verdict != done {
			return out
		}
		return outcome{verdict: unready}
	}
	wc := driver.Completion{ID: r.ID, Op: driver.OpRecv, Bytes: wr.Length()}
	if wr.Op == driver.OpWriteImm {
		if out := write(p, wr); out.verdict != done {
			return out
		}
		wc.Op, wc.HasImm, wc.Imm = driver.OpRecvImm, true, wr.Imm
	} else if room := wq.Length(r.Local); wc.Bytes > room {
		err := fmt.Errorf("%w: a SEND of %d bytes for a receive of %d", driver.ErrInvalid, wc.Bytes, room)
		p.completeRecv(driver.Completion{ID: r.ID, Status: driver.LocalLength, Op: driver.OpRecv, Err: err})
		p.recvs.Pop()
		return outcome{verdict: failed, status: driver.RemoteInvalid, err: err, touched: true}
	} else {
		exchange(r.Local, wr.Local)
	}
	p.completeRecv(wc)
	p.recvs.Pop()
	return outcome{touched: true}
}

// denied is the outcome of an access that the peer's region refuses.
func denied(err error) outcome {
	return outcome{verdict: failed, status: driver.RemoteAccess, err: err}
}

// exchange copies from segments to segments that hold as much or more.
func exchange(dst, src []driver.Segment) {
	done := 0
	for i := range src {
		wq.Scatter(dst, done, src[i].Mem)
		done += len(src[i].Mem)
	}
}

// Map returns the peer's slice itself.
func (q *qp) Map(_ context.Context, remote driver.RemoteAddr, n int, access driver.Access) ([]byte, error) {
	p := q.peer.Load()
	if p == nil {
		return nil, fmt.Errorf("%w: connect before mapping", driver.ErrState)
	}
	m, mem, err := p.ctx.keys.open(remote, n, access)
	if err != nil {
		return nil, err
	}
	m.done()
	return mem, nil
}

// PeerBell returns the bell of the peer's context.
func (q *qp) PeerBell() wait.Ringer {
	if p := q.peer.Load(); p != nil {
		return p.ctx.bell
	}
	return nil
}
