package fabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A mailbox receives messages on a queue pair, if the device needs that. There are two
// kinds of messages:
//
// A notice wakes the target, on devices whose writes are silent
// (driver.WriteInfo.Silent). A plain WRITE wakes no goroutine there, so the origin of a
// flag sends an immediate behind it.
//
// A request carries an atomic if the job wants the CPU's atomics, and the device's must not
// be mixed with them. A goroutine that makes progress at the target applies the atomic,
// and the response brings the old value.
//
// The target's program takes no part in either. At an event of the device the fabric takes
// the message, posts the receive again and rings the bell.
type mailbox struct {
	f    *Fabric
	bind *binding
	qp   *verbs.QP
	mr   *verbs.MR
	// The holder of polling uses the rest.
	due     []uint64 // slots whose responses found no room in the send queue, in order
	wr      [1]driver.WorkRequest
	seg     [1]driver.Segment
	again   [1]driver.RecvRequest
	slotSeg [1]driver.Segment
}

// mailboxDepth bounds the notices and requests of one peer that are on their way. A device
// may take fewer. Further ones wait at the sender.
const mailboxDepth = 64

// listens reports whether b's queue pairs need mailboxes.
func (f *Fabric) listens(b *binding) bool { return b.info.Writes.Silent || f.byCPU(b) }

// byCPU reports whether the target's CPU applies atomics over b.
func (f *Fabric) byCPU(b *binding) bool {
	return !f.cfg.DeviceAtomics && !b.info.Atomics.Coherent && !b.info.Atomics.Extended
}

// newMailbox makes the mailbox of a queue pair. It returns nil if b needs none.
func (f *Fabric) newMailbox(ctx context.Context, b *binding, qp *verbs.QP) (*mailbox, error) {
	if !f.listens(b) {
		return nil, nil
	}
	mr, err := b.pd.RegMR(ctx, memory.Heap(b.receives()*messageSize), driver.LocalWrite)
	if err != nil {
		return nil, err
	}
	m := &mailbox{f: f, bind: b, qp: qp, mr: mr, due: make([]uint64, 0, b.receives())}
	b.mailboxes.Store(qp.Num(), m)
	return m, nil
}

// open posts all receives. The queue pair takes them by now.
func (m *mailbox) open() {
	if m == nil {
		return
	}
	segs := pieces(m.mr, messageSize)
	requests := make([]driver.RecvRequest, len(segs))
	for i := range segs {
		requests[i] = driver.RecvRequest{ID: uint64(i), Local: segs[i : i+1]}
	}
	for len(requests) > 0 {
		n, err := m.qp.PostRecv(requests)
		if err != nil {
			return // the connection is over; the peer learns that itself
		}
		requests = requests[n:]
	}
}

// expectAgain posts the receive of slot i once more. The caller holds polling.
func (m *mailbox) expectAgain(i uint64) {
	m.slotSeg[0] = driver.Segment{Mem: m.slot(i), LKey: m.mr.LKey()}
	m.again[0] = driver.RecvRequest{ID: i, Local: m.slotSeg[:]}
	_, _ = m.qp.PostRecv(m.again[:]) // as in open
}

func (m *mailbox) slot(i uint64) []byte {
	return m.mr.Bytes()[i*messageSize:][:messageSize:messageSize]
}

// close frees the memory. The queue pair is closed already.
func (m *mailbox) close() error {
	if m == nil {
		return nil
	}
	m.bind.mailboxes.Delete(m.qp.Num())
	m.f.apart(func() { // a goroutine that polls may have found the mailbox before
		m.bind.due.Add(-int64(len(m.due)))
		m.due = nil
	})
	return m.mr.Close()
}

// received handles the completion of a receive. The caller holds polling.
func (b *binding) received(wc *driver.Completion) {
	box, ok := b.mailboxes.Load(wc.QP)
	if !ok || wc.Status != driver.Success || wc.ID >= uint64(b.receives()) {
		return
	}
	m := box.(*mailbox)
	if wc.Op == driver.OpRecv && wc.Bytes == messageSize {
		m.read(wc.ID)
		return
	}
	m.expectAgain(wc.ID)
}

// read handles the message in slot i. A request keeps its slot until its response has left.
// So a peer never waits for more responses than this rank has receives.
func (m *mailbox) read(i uint64) {
	msg := (*message)(m.slot(i))
	switch msg[messageKind] {
	case kindRequest:
		m.apply(msg)
	case kindMove:
		m.move(msg)
	case kindResponse:
		m.complete(msg)
		fallthrough
	default:
		m.expectAgain(i)
		return
	}
	m.due = append(m.due, i)
	m.bind.due.Add(1)
	m.respond()
}

// apply carries out the request in msg and turns msg into the response.
func (m *mailbox) apply(msg *message) {
	status, old, second := driver.RemoteAccess, uint64(0), uint64(0)
	a, ok := msg.atomic()
	if word := m.f.regions.word(m.bind, msg.address(), int(a.Width)); ok && word != nil {
		status = driver.Success
		if a.Width > 8 {
			old, second = a.applyPair(word)
		} else {
			old = atomics.Apply(word, a.Op, a.Operand, a.Compare)
		}
		m.f.bell.Ring()
	}
	msg.respond(status, old, second)
}

// applyPair carries out a on a word of 16 bytes, and returns the halves of its earlier value.
func (a Atomic) applyPair(word []byte) (old, second uint64) {
	var b [16]byte
	atomics.PutUint(b[:8], a.Operand)
	atomics.PutUint(b[8:], a.Compare)
	atomics.ApplyEach(word, a.Op, len(b), b[:], b[:])
	return atomics.Uint(b[:8]), atomics.Uint(b[8:])
}

// respond posts the responses that are due, in order, and the receive of each again. In a
// full queue requests are under way: the next completion of one posts the rest.
func (m *mailbox) respond() {
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
		default: // the connection is over; the peer learns that itself
			_ = m.qp.Modify(m.f.ctx, driver.StateErr, driver.Attr{})
		}
		m.due = m.due[:copy(m.due, m.due[1:])]
		m.bind.due.Add(-1)
		m.expectAgain(i)
	}
}

// roomFor posts responses that are due, at a completion that left room for them. The
// caller holds polling.
func (b *binding) roomFor(wc *driver.Completion) {
	if b.due.Load() == 0 {
		return
	}
	if box, ok := b.mailboxes.Load(wc.QP); ok {
		box.(*mailbox).respond()
	}
}

// complete hands a response to the operation that sent the request.
func (m *mailbox) complete(msg *message) {
	o := m.bind.ops.find(msg.uint(messageID))
	if o == nil || o.uses.Load() != msg.uint(messageUse) || o.peer.qp.Load() != m.qp || o.phase.Load() == done {
		return
	}
	o.status = driver.Status(msg[messageStatus])
	if o.status != driver.Success {
		o.peer.refusedBy(o.status, nil)
	}
	binary.NativeEndian.PutUint64(o.word.Mem, msg.uint(messageValue))
	o.second = msg.uint(messageSecond)
	o.peer.responses.Add(1)
	o.finish()
}

// request fills work request i with the request for an atomic. Its completion matters only if
// it failed. The id keeps a late completion from the operation's next use.
func (o *op) request(i int, at driver.RemoteAddr, a Atomic) {
	o.message.request(o.id, o.uses.Load(), at, a)
	o.send(i)
}

// send fills work request i with the request that is in o's message.
func (o *op) send(i int) {
	o.byCPU = true
	o.seg[i] = driver.Segment{Mem: o.message[:]}
	o.wr[i] = driver.WorkRequest{ID: requestID(o.id, o.uses.Load()), Op: driver.OpSend, Local: o.seg[i : i+1],
		Flags: driver.Inline | driver.Signaled | driver.Solicited}
}

// requestID returns the id of a request to the target's CPU, for its operation's present use.
func requestID(id, use uint64) uint64 { return id | (use|1<<31)<<32 }

// maxRequests bounds the requests to one peer's CPU over b that wait for their responses.
func (b *binding) maxRequests() uint64 { return uint64(max(1, b.receives()/2)) }

// errCrowded says that too many requests to the peer's CPU wait for their responses.
var errCrowded = errors.New("too many requests wait for responses")

// requested returns how many requests this rank has sent to p's CPU. Without a mailbox for
// responses there are none.
func (p *Peer) requested() uint64 {
	if p.mail == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests.Load()
}

// awaitResponses waits for the responses to the first upTo requests to p's CPU. One queue
// pair carries them, so they arrive in order.
func (p *Peer) awaitResponses(ctx context.Context, upTo uint64) error {
	arrived := func() bool { return p.responses.Load() >= upTo || p.fail.Load() != nil }
	if arrived() {
		return nil
	}
	return p.f.Wait(ctx, arrived)
}

// keepOrder has o wait for responses of the target's CPU. It does so if o must not overtake
// earlier requests, or if too many of them wait for responses.
func (p *Peer) keepOrder(ctx context.Context, o *op) error {
	requests := p.requests.Load()
	switch {
	case requests == p.responses.Load():
		return nil
	case o.byCPU && requests < p.bind.maxRequests():
		return nil
	case o.byCPU:
		return p.awaitResponses(ctx, requests-p.bind.maxRequests()+1)
	case o.ordered:
		return p.awaitResponses(ctx, p.requested())
	}
	return p.awaitResponses(ctx, p.requestedAhead())
}

// fitForMessages refuses devices that cannot carry a message inline.
func (b *binding) fitForMessages() error {
	if b.info.MaxInline >= messageSize {
		return nil
	}
	return fmt.Errorf("%w: %s takes less inline data than the %d bytes that gopgas needs", driver.ErrNoDevice, b.info.Name, messageSize)
}
