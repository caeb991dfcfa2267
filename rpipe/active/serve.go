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
	messages []message     // of the block that was dispatched last
	work     chan message  // has no room: requests without a worker stay in the pipes
	done     chan struct{} // closed when no handler runs and no request follows
	handled  atomic.Uint64
	failures atomic.Uint64
	running  atomic.Int64
}

// A message is a request with the block in which it lies.
type message struct {
	frame
	from  int
	block *countedBlock
}

// A countedBlock is freed behind the last of its messages.
type countedBlock struct {
	rpipe.Block[byte]
	left atomic.Int64 // messages that are not handled
}

// serve starts the workers, and a goroutine that receives messages for them.
func (e *Endpoint) serve(workers int) {
	t := &e.target
	t.work, t.done = make(chan message), make(chan struct{})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { e.worker(&all) })
	}
	go func() {
		e.receive()
		close(t.work)
		all.Wait()
		close(t.done)
	}()
}

// receive hands messages to the workers until all ranks have closed. An error of a rank
// ends its messages; its callers learn of it there.
func (e *Endpoint) receive() {
	for b, err := range e.target.in.All(e.alive) {
		if err != nil {
			continue
		}
		if err := e.dispatch(b); err != nil {
			e.target.failures.Add(1)
			_ = e.target.in.Free(b.Block) // fails when the pipe has ended
		}
	}
}

// dispatch hands the messages of a block to workers, and waits for workers. It refuses a
// corrupt block before it hands out any message.
func (e *Endpoint) dispatch(b fan.Arrival[byte]) error {
	s := &countedBlock{Block: b.Block}
	messages := e.target.messages[:0]
	for rest := b.Mem(); len(rest) > 0; {
		m := message{from: b.From, block: s}
		var err error
		if m.frame, rest, err = decodeFrame(rest); err != nil {
			return err
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return errNoMessage
	}
	e.target.messages = messages
	s.left.Store(int64(len(messages)))
	for _, m := range messages {
		select {
		case e.target.work <- m:
		case <-e.alive.Done():
			return nil
		}
	}
	return nil
}

var errNoMessage = fmt.Errorf("%w: a block without messages", rpipe.ErrCorrupt)

// worker runs one handler after the other. Another worker replaces it when a handler ends
// its goroutine.
func (e *Endpoint) worker(all *sync.WaitGroup) {
	ended := false
	defer func() {
		if !ended {
			all.Go(func() { e.worker(all) })
		}
	}()
	for m := range e.target.work {
		e.handle(&m)
	}
	ended = true
}

// handle runs a message's handler, and sends the reply to a call.
func (e *Endpoint) handle(m *message) {
	f := frame{kind: frameFailure, reason: panicked, id: m.id, payload: noReturn}
	e.target.running.Add(1)
	defer e.finish(m, &f) // also when the handler ends the goroutine
	f.kind, f.reason, f.payload = e.run(m)
}

var noReturn = []byte("it has ended its goroutine")

// finish sends the reply, and frees a block behind its last message.
func (e *Endpoint) finish(m *message, reply *frame) {
	t := &e.target
	if reply.kind == frameFailure {
		t.failures.Add(1)
	}
	t.running.Add(-1)
	t.handled.Add(1)
	if m.id != 0 {
		e.reply(m.from, reply)
	}
	if m.block.left.Add(-1) == 0 {
		_ = t.in.Free(m.block.Block) // fails when the pipe has ended
	}
}

// reply sends a reply. It discards a reply that it cannot send: the caller's rank is gone,
// or this one closes.
func (e *Endpoint) reply(to int, f *frame) {
	err := put(e.alive, &e.replies, to, f, true)
	if errors.Is(err, rpipe.ErrTooLarge) {
		f = &frame{kind: frameFailure, reason: replyTooLarge, id: f.id}
		_ = put(e.alive, &e.replies, to, f, true)
	}
}

// maxText is the number of bytes of a handler's error that its caller gets.
const maxText = 256

// run calls the handler, recovers its panic, and returns the content of its reply.
func (e *Endpoint) run(m *message) (kind frameKind, why reason, payload []byte) {
	h := e.handlers[m.name]
	if h == nil || m.kind != frameRequest {
		return frameFailure, noHandler, nil
	}
	defer func() {
		if p := recover(); p != nil {
			kind, why, payload = frameFailure, panicked, cutText(fmt.Sprint(p))
		}
	}()
	reply, err := h(e.within, m.from, m.payload)
	if err != nil {
		return frameFailure, handlerFailed, cutText(err.Error())
	}
	return frameReply, 0, reply
}

// cutText returns the first maxText bytes of s.
func cutText(s string) []byte { return []byte(s[:min(len(s), maxText)]) }
