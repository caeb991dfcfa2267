package active

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
)

// A target runs the handlers of messages that arrive.
type target struct {
	in       *fan.In[byte]
	work     chan message // without room: what is not taken stays in the pipes
	done     chan struct{}
	handled  atomic.Uint64
	failures atomic.Uint64
	running  atomic.Int64
}

// A message is a request with the block that it lies in.
type message struct {
	frame
	from  int
	block *shared
}

// A shared block is freed behind the last of its messages.
type shared struct {
	block rpipe.Block[byte]
	left  atomic.Int64
}

// serve starts so many workers and what hands them their messages.
func (a *Endpoint) serve(workers int) {
	t := &a.target
	t.work, t.done = make(chan message), make(chan struct{})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { a.worker(&all) })
	}
	go func() {
		a.receive()
		close(t.work)
		all.Wait()
		close(t.done)
	}()
}

// receive hands out messages until all ranks have closed. Those of a rank that is
// gone are none any more, which is its callers' business.
func (a *Endpoint) receive() {
	for b, err := range a.target.in.All(a.alive) {
		if err != nil {
			continue
		}
		if err := a.handOut(b); err != nil {
			a.target.failures.Add(1)
			_ = a.target.in.Free(b.Block) // its memory can be used, whatever it held
		}
	}
}

// handOut hands the messages of a block to workers, waiting for those. It refuses a
// block that is not made of requests before anyone has any of it.
func (a *Endpoint) handOut(b fan.Arrival[byte]) error {
	n, err := countFrames(b.Mem())
	if err != nil || n == 0 {
		return errors.Join(err, errNoMessage)
	}
	s := &shared{block: b.Block}
	s.left.Store(int64(n))
	for rest := b.Mem(); len(rest) > 0; {
		m := message{from: b.From, block: s}
		m.frame, rest, _ = decodeFrame(rest) // as counted
		select {
		case a.target.work <- m:
		case <-a.alive.Done():
			return nil
		}
	}
	return nil
}

var errNoMessage = fmt.Errorf("%w: a block without messages", rpipe.ErrCorrupt)

// worker runs one handler after the other. One whose handler ends its goroutine has
// a successor.
func (a *Endpoint) worker(all *sync.WaitGroup) {
	over := false
	defer func() {
		if !over {
			all.Go(func() { a.worker(all) })
		}
	}()
	for m := range a.target.work {
		a.handle(&m)
	}
	over = true
}

// handle runs a message's handler and sends its reply, if one is wanted.
func (a *Endpoint) handle(m *message) {
	o := outcome{why: panicked, err: errNoReturn}
	a.target.running.Add(1)
	defer a.conclude(m, &o) // even where the handler ends the goroutine
	o.reply, o.why, o.err = a.run(m)
}

// An outcome holds a handler's reply, or the reason of its failure.
type outcome struct {
	reply []byte
	why   reason
	err   error
}

var errNoReturn = errors.New("it has ended its goroutine")

// conclude sends the reply, and frees a block behind its last message.
func (a *Endpoint) conclude(m *message, o *outcome) {
	t := &a.target
	answer := frame{kind: frameReply, id: m.id, payload: o.reply}
	if o.err != nil {
		answer.kind, answer.reason, answer.payload = frameFailure, o.why, []byte(o.err.Error())
		t.failures.Add(1)
	}
	t.running.Add(-1)
	t.handled.Add(1)
	if m.id != 0 {
		a.answer(m.from, &answer)
	}
	if m.block.left.Add(-1) == 0 {
		_ = t.in.Free(m.block.block) // fails when the pipe is of no more use
	}
}

// answer sends a reply. It drops a reply that it cannot send: the caller's rank is gone,
// or this one closes.
func (a *Endpoint) answer(to int, f *frame) {
	err := a.replies.put(a.alive, to, f, true)
	if err != nil && errors.Is(err, rpipe.ErrTooLarge) {
		f = &frame{kind: frameFailure, reason: replyTooLarge, id: f.id}
		_ = a.replies.put(a.alive, to, f, true)
	}
}

// maxText bounds what is told of an error.
const maxText = 256

// run calls the handler, and survives it.
func (a *Endpoint) run(m *message) (reply []byte, why reason, err error) {
	h := a.handlers[m.name]
	if h == nil || m.kind != frameRequest {
		return nil, noHandler, errors.New("")
	}
	defer func() {
		if p := recover(); p != nil {
			reply, why, err = nil, panicked, cutText(fmt.Sprint(p))
		}
	}()
	reply, err = h(a.within, m.from, m.payload)
	if err != nil {
		err = cutText(err.Error())
	}
	return reply, failedItself, err
}

// cutText is an error whose text fits a message.
func cutText(s string) error { return errors.New(s[:min(len(s), maxText)]) }
