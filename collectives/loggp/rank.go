package loggp

import (
	"container/heap"
	"context"
	"errors"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

var (
	errCircle  = errors.New("ranks wait for each other")
	errLength  = errors.New("sender and receiver give different lengths")
	errStopped = errors.New("the replay has ended")
)

// A rank is a member of the simulated team. It implements message.Transport.
type rank struct {
	replay *replay
	id     int
	clock  float64 // virtual time
	idle   float64 // time from which the rank may send its next message
	from   map[int]*stream

	messages, scratch int
	waitsFor          int
	err               error
	ended             bool

	yield func(struct{}) bool
	next  func() (struct{}, bool)
	stop  func()
}

// A stream holds the messages from one rank to another that the receiver has not taken. It also
// holds the receiver's offers that the sender has not used.
type stream struct {
	sent     []arrival
	offers   []float64
	receiver *rank // waits for a message
	sender   *rank // waits for an offer
}

// An arrival is a message on its way.
type arrival struct {
	at    float64
	bytes int
}

// stream returns the stream from a rank to this one.
func (r *rank) stream(from int) *stream {
	if r.from == nil {
		r.from = map[int]*stream{}
	}
	s := r.from[from]
	if s == nil {
		s = &stream{}
		r.from[from] = s
	}
	return s
}

// pause gives way to the ranks whose clocks are less.
func (r *rank) pause() error {
	ready := &r.replay.ready
	if len(*ready) == 0 || (*ready)[0].clock >= r.clock {
		return nil
	}
	heap.Push(ready, r)
	return r.suspend()
}

// suspend lets other ranks run until one of them puts this rank into the queue.
func (r *rank) suspend() error {
	if !r.yield(struct{}{}) {
		return errStopped
	}
	return nil
}

// wake puts a rank that waits into the queue. at is the time of the event that it waits for.
func (r *rank) wake(at float64) {
	r.clock = max(r.clock, at)
	heap.Push(&r.replay.ready, r)
}

// link returns the constants between this rank and another.
func (r *rank) link(other int) (l *Link, sameHost bool) {
	m := r.replay.machine
	if m.host(r.id) == m.host(other) {
		return &m.Within, true
	}
	return &m.Among, false
}

// waits reports whether the sender of a message waits for its receiver.
func (l *Link) waits(bytes int, folded bool) bool {
	return !folded && l.Rendezvous > 0 && bytes >= l.Rendezvous
}

// send sends a message. A transfer of no bytes sends none, as in a job.
func (r *rank) send(to, bytes int, folded bool) error {
	if to == message.NoMember || bytes == 0 {
		return nil
	}
	if err := r.pause(); err != nil {
		return err
	}
	l, sameHost := r.link(to)
	receiver := &r.replay.ranks[to]
	s := receiver.stream(r.id)
	if l.waits(bytes, folded) {
		if err := r.awaitOffer(s, to); err != nil {
			return err
		}
	}
	r.clock = max(r.clock, r.idle) + l.Send + l.SendPerByte*float64(bytes)
	r.idle = r.clock - l.Send + max(l.Gap, l.Send)
	s.sent = append(s.sent, arrival{r.transfer(l, sameHost, to, bytes), bytes})
	r.count(to, bytes)
	if s.receiver != nil {
		s.receiver.wake(s.sent[0].at)
		s.receiver = nil
	}
	return nil
}

// transfer returns the time at which the last byte of a message arrives. The message uses the
// ports of both hosts, or the memory of one.
func (r *rank) transfer(l *Link, sameHost bool, to, bytes int) float64 {
	length := l.PerByte * float64(bytes)
	if sameHost {
		r.idle = max(r.idle, r.clock+length)
		return r.clock + l.Latency + length
	}
	m := r.replay.machine
	out, in := &r.replay.ports[m.host(r.id)].out, &r.replay.ports[m.host(to)].in
	start := max(r.clock, *out)
	*out = start + length
	at := max(start+l.Latency, *in) + length
	*in = at
	return at
}

// count counts a message that was sent.
func (r *rank) count(to, bytes int) {
	result := &r.replay.result
	result.Messages++
	result.Bytes += int64(bytes)
	if _, sameHost := r.link(to); !sameHost {
		result.Among++
	}
	r.messages++
	result.MostMessages = max(result.MostMessages, r.messages)
	if r.replay.trace != nil {
		r.replay.trace(Message{r.id, to, bytes})
	}
}

// awaitOffer waits until the receiver waits for the next message of a stream.
func (r *rank) awaitOffer(s *stream, to int) error {
	for len(s.offers) == 0 {
		s.sender, r.waitsFor = r, to
		if err := r.suspend(); err != nil {
			return err
		}
	}
	r.clock = max(r.clock, s.offers[0])
	s.offers = s.offers[1:]
	return nil
}

// offer tells a sender that this rank waits for its message.
func (r *rank) offer(from, bytes int, folded bool) {
	if from == message.NoMember || bytes == 0 {
		return
	}
	l, _ := r.link(from)
	if !l.waits(bytes, folded) {
		return
	}
	r.clock += l.Send
	s := r.stream(from)
	s.offers = append(s.offers, r.clock+l.Latency)
	if s.sender != nil {
		s.sender.wake(s.offers[0])
		s.sender = nil
	}
}

// receive receives a message. The time of combining it follows.
func (r *rank) receive(from, bytes int, folded bool) error {
	if from == message.NoMember || bytes == 0 {
		return nil
	}
	if err := r.pause(); err != nil {
		return err
	}
	s := r.stream(from)
	for len(s.sent) == 0 {
		s.receiver, r.waitsFor = r, from
		if err := r.suspend(); err != nil {
			return err
		}
	}
	came := s.sent[0]
	s.sent = s.sent[1:]
	if came.bytes != bytes {
		return errLength
	}
	l, _ := r.link(from)
	r.clock = max(r.clock, came.at) + l.Receive + l.ReceivePerByte*float64(bytes)
	if folded {
		r.clock += r.replay.machine.CombinePerByte * float64(bytes)
	}
	return nil
}

// sendReceive sends one message and receives another.
func (r *rank) sendReceive(to, out int, folded bool, from, in int) error {
	r.offer(from, in, folded)
	if err := r.send(to, out, folded); err != nil {
		return err
	}
	return r.receive(from, in, folded)
}

// Rank implements message.Transport.
func (r *rank) Rank() int { return r.id }

// Size implements message.Transport.
func (r *rank) Size() int { return r.replay.machine.Ranks }

// Send implements message.Transport.
func (r *rank) Send(_ context.Context, to int, src []byte) error {
	return r.sendReceive(to, len(src), false, message.NoMember, 0)
}

// SendFold implements message.Transport.
func (r *rank) SendFold(_ context.Context, to int, src []byte) error {
	return r.sendReceive(to, len(src), true, message.NoMember, 0)
}

// Recv implements message.Transport.
func (r *rank) Recv(_ context.Context, from int, dst []byte) error {
	return r.sendReceive(message.NoMember, 0, false, from, len(dst))
}

// Fold implements message.Transport.
func (r *rank) Fold(_ context.Context, from int, f message.Folding) error {
	return r.sendReceive(message.NoMember, 0, true, from, len(f.Dst))
}

// Exchange implements message.Transport.
func (r *rank) Exchange(_ context.Context, to int, src []byte, from int, dst []byte) error {
	return r.sendReceive(to, len(src), false, from, len(dst))
}

// ExchangeFold implements message.Transport.
func (r *rank) ExchangeFold(_ context.Context, to int, src []byte, from int, f message.Folding) error {
	return r.sendReceive(to, len(src), true, from, len(f.Dst))
}

// Expect implements message.Transport. All connections are there from the start.
func (r *rank) Expect(context.Context, []int) error { return nil }

// ExchangeAll implements message.Transport. Like the transport of a job it sends all
// messages first, if no sender waits for its receiver.
func (r *rank) ExchangeAll(ctx context.Context, b message.Batch) error {
	for k := range b.Steps() {
		if s := b.Step(k); r.long(s.To, len(s.Src)) || r.long(s.From, len(s.Dst)) {
			return message.ExchangeInTurns(ctx, r, &b)
		}
	}
	for k := range b.Steps() {
		if s := b.Step(k); s.To != message.NoMember {
			if err := r.send(s.To, len(s.Src), false); err != nil {
				return err
			}
		}
	}
	for k := range b.Steps() {
		if s := b.Step(k); s.From != message.NoMember {
			if err := r.receive(s.From, len(s.Dst), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// long reports whether the sender of a message waits for its receiver.
func (r *rank) long(other, bytes int) bool {
	if other == message.NoMember {
		return false
	}
	l, _ := r.link(other)
	return l.waits(bytes, false)
}
