package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An op is an operation under way on a queue pair. They are recycled: whoever
// waits for one gives it back and must not touch it afterwards. One that nobody
// waits for is given back by its completion.
type op struct {
	f       *Fabric
	bind    *binding
	peer    *Peer
	remote  *Remote
	id      uint64
	wr      [3]driver.WorkRequest // a write, its flag and its notice are posted together
	seg     [3]driver.Segment
	word    driver.Segment // 8 bytes of ours: an inline payload or a result
	loan                   // of the data
	letter  letter
	asking  bool  // an answer completes it
	ordered bool  // must not overtake what was asked before
	alone   bool  // nobody will wait
	unfit   error // why it cannot be posted
	phase   atomic.Uint32
	uses    atomic.Uint64 // counts recyclings: an old Request is told from a new one
	place   uint64        // among the peer's posts, of the request that tells
	status  driver.Status
	err     error
	next    *op
}

// The phases of an operation.
const (
	underWay  uint32 = iota
	done             // its completion was there: whoever waits gives it back
	leftAlone        // nobody waits any more: its completion gives it back
)

// Ids of work requests that belong to no operation. An unsignalled request
// completes only when it fails; a signalled one without operation is there to
// make room in the queue.
const (
	unsignaledID = 0
	roomID       = ^uint64(0)
)

// opTable finds a binding's operations by the id of their work request.
type opTable struct {
	mu    sync.Mutex
	all   []*op
	free  *op
	words []driver.Segment // registered, that no operation has yet
	mrs   []*verbs.MR      // that words lie in
}

// take returns a clean operation on r.
func (t *opTable) take(r *Remote) *op {
	t.mu.Lock()
	o := t.free
	if o == nil {
		o = &op{f: r.Peer.f, bind: r.Peer.bind}
		t.all = append(t.all, o)
		o.id = uint64(len(t.all))
	} else {
		t.free = o.next
	}
	if o.word.Mem == nil {
		o.unfit = t.equip(o)
	}
	t.mu.Unlock()
	o.peer, o.remote, o.next = r.Peer, r, nil
	o.asking, o.ordered, o.alone, o.status, o.err = false, false, false, driver.Success, nil
	o.phase.Store(underWay)
	return o
}

// wordsBatch is for how many operations words are made together.
const wordsBatch = 256

// equip gives o its word.
func (t *opTable) equip(o *op) error {
	if !o.bind.info.LocalKeys {
		o.word.Mem = make([]byte, 8)
		return nil
	}
	if len(t.words) == 0 {
		mr, err := o.bind.pd.RegMR(o.f.ctx, memory.Heap(8*wordsBatch), driver.LocalWrite)
		if err != nil {
			return err
		}
		t.mrs, t.words = append(t.mrs, mr), pieces(mr, 8)
	}
	o.word, t.words = t.words[0], t.words[1:]
	return nil
}

// close takes the registrations out; nothing is posted any more.
func (t *opTable) close() []*verbs.MR {
	t.mu.Lock()
	defer t.mu.Unlock()
	mrs := t.mrs
	t.mrs = nil
	return mrs
}

func (t *opTable) give(o *op) {
	o.giveBack(o.bind)
	o.wr, o.seg, o.unfit = [3]driver.WorkRequest{}, [3]driver.Segment{}, nil
	o.uses.Add(1)
	t.mu.Lock()
	o.next, t.free = t.free, o
	t.mu.Unlock()
}

func (t *opTable) find(id uint64) *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == unsignaledID || id > uint64(len(t.all)) {
		return nil
	}
	return t.all[id-1]
}

// post queues the first n work requests of o, waiting while the queue is full,
// and returns how many it queued. Whatever fails later is in the completion, or
// in the peer's error.
func (o *op) post(ctx context.Context, n int) (posted int, err error) {
	p := o.peer
	if err := p.keepOrder(ctx, o); err != nil {
		return 0, err
	}
	for {
		if err := p.Err(); err != nil || o.unfit != nil {
			return posted, errors.Join(err, o.unfit)
		}
		before := p.bind.completed.Load()
		took, err := p.tryPost(o, posted, n)
		posted += took
		switch {
		case posted == n:
			return n, nil
		case err == nil || errors.Is(err, driver.ErrQueueFull):
			p.Stats.stalls.Add(1)
			if err := p.f.awaitRoom(ctx, p, before); err != nil {
				return posted, err
			}
			if ctx.Err() != nil {
				return posted, context.Cause(ctx)
			}
		default:
			return posted, p.refused(ctx, err)
		}
	}
}

// tryPost posts what fits of o's requests from the given one up to n, keeping
// the peer's order and its signals.
func (p *Peer) tryPost(o *op, from, n int) (int, error) {
	wrs := o.wr[from:n]
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.remote.retired != nil {
		return 0, o.remote.retired
	}
	for i := range wrs {
		p.sign(&wrs[i])
		if wrs[i].ID == o.id {
			o.place = p.posted.Load() + uint64(i) + 1
		}
	}
	if o.asking { // counted ahead of the answer
		p.asked.Add(1)
	}
	took, err := p.qp.PostSend(wrs)
	if o.asking && took == 0 {
		p.asked.Add(^uint64(0))
		p.f.bell.Ring()
	}
	for i := range wrs[:took] {
		p.account(&wrs[i])
	}
	return took, err
}

// sign has every so many requests complete, and applies a pending Order.
func (p *Peer) sign(wr *driver.WorkRequest) {
	if p.fence {
		wr.Flags |= driver.Fence
	}
	if wr.Flags&driver.Signaled == 0 && p.unsignaled+1 >= signalEvery {
		wr.Flags |= driver.Signaled
		wr.ID = roomID
	}
}

func (p *Peer) account(wr *driver.WorkRequest) {
	p.fence = false
	p.posted.Add(1)
	if wr.Op == driver.OpSend {
		p.Stats.sends.Add(1)
	}
	if wr.Flags&driver.Signaled == 0 {
		p.unsignaled++
		return
	}
	p.unsignaled = 0
	p.bind.outstanding.Add(1)
}

// refused explains a post that the queue pair did not take: mostly since the
// connection broke, and then the verdict on the peer says more.
func (p *Peer) refused(ctx context.Context, err error) error {
	if errors.Is(err, driver.ErrState) || errors.Is(err, driver.ErrClosed) {
		return p.f.verdict(ctx, p, err.Error())
	}
	return fmt.Errorf("rank %d: %w", p.rank, err)
}

// settle returns what o came to and gives it back.
func (o *op) settle(ctx context.Context) error {
	if err := o.await(ctx); err != nil {
		return err
	}
	o.fillBorrowed()
	o.bind.ops.give(o)
	return nil
}

// await waits for o's success. After an error o is given back already. When ctx
// ends first, no memory of the caller's is in use any more.
func (o *op) await(ctx context.Context) error {
	if err := o.f.Wait(ctx, o.over); err != nil {
		o.withdraw()
		return err
	}
	if o.phase.Load() == done && o.status == driver.Success {
		return nil
	}
	if o.asking && o.phase.Load() != done && !o.f.ended.Load() {
		err := o.peer.Err()
		o.leave() // the answer may be on its way all the same
		return err
	}
	over, p, status, cause := o.phase.Load() == done, o.peer, o.status, o.err
	o.bind.ops.give(o)
	if !over {
		return ErrClosed
	}
	return p.explain(ctx, status, cause)
}

// explain turns the status of a request that failed into the peer's error.
func (p *Peer) explain(ctx context.Context, status driver.Status, cause error) error {
	detail := status.String()
	if cause != nil {
		detail = cause.Error()
	}
	if status == driver.Flushed || status == driver.RetryExceeded {
		return p.f.verdict(ctx, p, detail)
	}
	p.fail.CompareAndSwap(nil, &RankError{Rank: p.rank, Kind: &StatusError{status}, Cause: detail})
	return p.Err()
}

// cancelGrace is how long a transfer that cannot be taken back may go on in the
// caller's memory after its ctx has ended: on a connection that is well it is
// over sooner.
const cancelGrace = 500 * time.Millisecond

// withdraw ends o for a caller who waits no more: it is given back, now or by
// its completion, and nobody touches the caller's memory from here on.
func (o *op) withdraw() {
	switch {
	case o.phase.Load() == done:
	case !o.borrowed:
		o.leave()
		return
	case o.peer.qp.Cancel(o.id):
		// The completion is queued, or about to be: this wait is short.
		_ = o.f.Wait(context.Background(), o.over)
	default:
		o.outlast()
	}
	o.bind.ops.give(o)
}

// leave has o's completion give it back, unless it was there already.
func (o *op) leave() {
	if !o.phase.CompareAndSwap(underWay, leftAlone) {
		o.bind.ops.give(o)
	}
}

// outlast waits for o's end, and has the connection end where it does not come.
func (o *op) outlast() {
	grace, cancel := context.WithTimeout(context.Background(), cancelGrace)
	defer cancel()
	if o.f.Wait(grace, o.over) == nil {
		return
	}
	o.peer.lose(&RankError{Rank: o.peer.rank, Kind: ErrUnreachable,
		Cause: "connection ended with a cancelled transfer that did not come to its end"})
	_ = o.f.Wait(context.Background(), o.over)
}

// over tells that no provider touches o's memory any more: it has completed, or
// the fabric is closed, or an answer will not come.
func (o *op) over() bool {
	return o.phase.Load() == done || o.f.ended.Load() || o.asking && o.peer.fail.Load() != nil
}

// finish is called once, by the completion.
func (o *op) finish() {
	if !o.phase.CompareAndSwap(underWay, done) {
		o.bind.ops.give(o)
	}
}

// A StatusError is the status that a work request failed with.
type StatusError struct{ Status driver.Status }

func (e *StatusError) Error() string { return e.Status.String() }

// Unwrap lets errors.Is find driver.ErrAccess behind a refused access.
func (e *StatusError) Unwrap() error {
	if e.Status == driver.RemoteAccess {
		return driver.ErrAccess
	}
	return nil
}
