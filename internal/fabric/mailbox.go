package fabric

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A mailbox is the receiving side of a queue pair, where the device needs one.
// Two things come in:
//
// A notice, on devices whose writes are silent (driver.WriteInfo.Silent):
// whoever sets a flag sends an immediate behind it, since a plain WRITE wakes
// nobody.
//
// A letter, on devices whose atomics must not be mixed with the CPU's, where
// the job wants the CPU's: the origin asks, whoever makes progress at the target
// applies the atomic, and the answer brings the old value.
//
// The target's program takes no part in either: an event of the device has the
// fabric take in what came, post the receive anew and ring the bell.
type mailbox struct {
	f    *Fabric
	bind *binding
	qp   *verbs.QP
	mr   *verbs.MR
	// Used with polling held.
	due     []uint64 // slots whose answers found no room in the send queue, in order
	wr      [1]driver.WorkRequest
	seg     [1]driver.Segment
	again   [1]driver.RecvRequest
	slotSeg [1]driver.Segment
}

// mailboxDepth is how many notices and letters of one peer may be on their way, or
// fewer where the device takes fewer; more of them wait at the sender.
const mailboxDepth = 64

// listens tells whether b's queue pairs need mailboxes.
func (f *Fabric) listens(b *binding) bool { return b.info.Writes.Silent || f.asks(b) }

// asks tells whether atomics over b are the target's CPU's.
func (f *Fabric) asks(b *binding) bool {
	return !f.cfg.DeviceAtomics && !b.info.Atomics.Coherent && !b.info.Atomics.Extended
}

// newMailbox makes the mailbox of a queue pair, nil where it needs none.
func (f *Fabric) newMailbox(ctx context.Context, b *binding, qp *verbs.QP) (*mailbox, error) {
	if !f.listens(b) {
		return nil, nil
	}
	mr, err := b.pd.RegMR(ctx, memory.Heap(b.receives()*letterSize), driver.LocalWrite)
	if err != nil {
		return nil, err
	}
	m := &mailbox{f: f, bind: b, qp: qp, mr: mr, due: make([]uint64, 0, b.receives())}
	b.mailboxes.Store(qp.Num(), m)
	return m, nil
}

// open posts all receives, once the queue pair takes some.
func (m *mailbox) open() {
	if m == nil {
		return
	}
	segs := pieces(m.mr, letterSize)
	requests := make([]driver.RecvRequest, len(segs))
	for i := range segs {
		requests[i] = driver.RecvRequest{ID: uint64(i), Local: segs[i : i+1]}
	}
	for len(requests) > 0 {
		n, err := m.qp.PostRecv(requests)
		if err != nil {
			return // the connection is over, which its peer learns
		}
		requests = requests[n:]
	}
}

// expectAgain posts the receive of slot i once more. Called with polling held.
func (m *mailbox) expectAgain(i uint64) {
	m.slotSeg[0] = driver.Segment{Mem: m.slot(i), LKey: m.mr.LKey()}
	m.again[0] = driver.RecvRequest{ID: i, Local: m.slotSeg[:]}
	_, _ = m.qp.PostRecv(m.again[:]) // as in open
}

func (m *mailbox) slot(i uint64) []byte { return m.mr.Bytes()[i*letterSize:][:letterSize:letterSize] }

// close gives the memory back; the queue pair is closed.
func (m *mailbox) close() error {
	if m == nil {
		return nil
	}
	m.bind.mailboxes.Delete(m.qp.Num())
	m.f.polling.Lock() // a goroutine that polls may have found the mailbox before
	m.bind.due.Add(-int64(len(m.due)))
	m.due = nil
	m.f.polling.Unlock()
	return m.mr.Close()
}

// received takes the completion of a receive. Called with polling held.
func (b *binding) received(wc *driver.Completion) {
	box, ok := b.mailboxes.Load(wc.QP)
	if !ok || wc.Status != driver.Success || wc.ID >= uint64(b.receives()) {
		return
	}
	m := box.(*mailbox)
	if wc.Op == driver.OpRecv && wc.Bytes == letterSize {
		m.read(wc.ID)
		return
	}
	m.expectAgain(wc.ID)
}

// read takes the letter in slot i. A question keeps its slot until its answer has left:
// a peer never has more questions unanswered than this rank has receives.
func (m *mailbox) read(i uint64) {
	l := (*letter)(m.slot(i))
	switch l[letterKind] {
	case kindAsk:
		m.apply(l)
		m.due = append(m.due, i)
		m.bind.due.Add(1)
		m.answer()
		return
	case kindAnswer:
		m.answered(l)
	}
	m.expectAgain(i)
}

// apply does what a letter asks for and turns it into the answer.
func (m *mailbox) apply(l *letter) {
	status, old := driver.RemoteAccess, uint64(0)
	a, ok := l.atomic()
	if word := m.f.regions.word(m.bind, l.address(), int(a.Width)); ok && word != nil {
		status, old = driver.Success, atomics.Apply(word, a.Op, a.Operand, a.Compare)
		m.f.bell.Ring()
	}
	l.answer(status, old)
}

// answer posts the answers that are due, in order, and the receive of each again. In a
// full queue requests are under way: the next completion of one of them posts the rest.
func (m *mailbox) answer() {
	for len(m.due) > 0 {
		i := m.due[0]
		m.seg[0].Mem = m.slot(i)
		m.wr[0] = driver.WorkRequest{ID: roomID, Op: driver.OpSend, Local: m.seg[:],
			Flags: driver.Inline | driver.Signaled | driver.Solicited}
		n, err := m.qp.PostSend(m.wr[:])
		switch {
		case n == 1:
			m.bind.outstanding.Add(1)
		case errors.Is(err, driver.ErrQueueFull):
			return
		default: // the connection is over, which the peer learns
			_ = m.qp.Modify(m.f.ctx, driver.StateErr, driver.Attr{})
		}
		m.due = m.due[:copy(m.due, m.due[1:])]
		m.bind.due.Add(-1)
		m.expectAgain(i)
	}
}

// roomFor takes the completion of a request, which left room for answers that are due.
// Called with polling held.
func (b *binding) roomFor(wc *driver.Completion) {
	if b.due.Load() == 0 {
		return
	}
	if box, ok := b.mailboxes.Load(wc.QP); ok {
		box.(*mailbox).answer()
	}
}

// answered hands an answer to the operation that asked.
func (m *mailbox) answered(l *letter) {
	o := m.bind.ops.find(l.uint(letterID))
	if o == nil || o.uses.Load() != l.uint(letterUse) || o.peer.qp != m.qp || o.phase.Load() == done {
		return
	}
	o.status = driver.Status(l[letterStatus])
	if o.status != driver.Success {
		o.peer.refusedBy(o.status, nil)
	}
	binary.NativeEndian.PutUint64(o.word.Mem, l.uint(letterValue))
	o.peer.answered.Add(1)
	o.finish()
}

// ask fills request i with the question for an atomic. Its completion only
// matters when it failed; the id keeps a late one from the operation's next use.
func (o *op) ask(i int, at driver.RemoteAddr, a Atomic) {
	o.letter.ask(o.id, o.uses.Load(), at, a)
	o.asking = true
	o.seg[i] = driver.Segment{Mem: o.letter[:]}
	o.wr[i] = driver.WorkRequest{ID: askID(o.id, o.uses.Load()), Op: driver.OpSend, Local: o.seg[i : i+1],
		Flags: driver.Inline | driver.Signaled | driver.Solicited}
}

// askID is the id of a question in its operation's present use.
func askID(id, use uint64) uint64 { return id | (use|1<<31)<<32 }

// maxAsking bounds the unanswered questions to one peer over b.
func (b *binding) maxAsking() uint64 { return uint64(max(1, b.receives()/2)) }

// errCrowded: too many questions to the peer are unanswered.
var errCrowded = errors.New("too many unanswered questions")

// questions returns how many were asked so far.
func (p *Peer) questions() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked.Load()
}

// awaitAnswers waits until the first upTo questions to p are answered. One
// queue pair carries them, so answers come in order.
func (p *Peer) awaitAnswers(ctx context.Context, upTo uint64) error {
	answered := func() bool { return p.answered.Load() >= upTo || p.fail.Load() != nil }
	if answered() {
		return nil
	}
	return p.f.Wait(ctx, answered)
}

// keepOrder has o wait for answers where it must not overtake what was asked,
// or where too many are missing.
func (p *Peer) keepOrder(ctx context.Context, o *op) error {
	asked := p.asked.Load()
	switch {
	case asked == p.answered.Load():
		return nil
	case o.asking && asked < p.bind.maxAsking():
		return nil
	case o.asking:
		return p.awaitAnswers(ctx, asked-p.bind.maxAsking()+1)
	case o.ordered:
		return p.awaitAnswers(ctx, p.questions())
	}
	return p.awaitAnswers(ctx, p.orderAt.Load())
}

// fitForLetters refuses devices that cannot carry a letter at once.
func (f *Fabric) fitForLetters(b *binding) error {
	if b.info.MaxInline >= letterSize {
		return nil
	}
	return errors.Join(driver.ErrUnsupported, errors.New(b.info.Name+" takes less inline data than the 64 bytes that gopgas needs"))
}
