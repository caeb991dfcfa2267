package netpipe

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// A half is one direction of a Conn. Calls take turns; each ends when the
// deadline passes or the direction is closed.
type half struct {
	turn sync.Mutex
	once sync.Once

	mu     sync.Mutex // held for moments; it guards the rest
	ctx    context.Context
	end    context.CancelCauseFunc // of ctx
	timer  *time.Timer             // ends ctx at the deadline; nil: there is none
	closed bool
}

// init makes a context that no deadline has ended.
func (h *half) init() { h.ctx, h.end = context.WithCancelCause(context.Background()) }

// begin waits for the call's turn, which the caller gives back by turn.Unlock.
// The same deadline binds the call that has the turn meanwhile.
func (h *half) begin() (context.Context, error) {
	h.turn.Lock()
	h.mu.Lock()
	defer h.mu.Unlock()
	err := context.Cause(h.ctx)
	if h.closed {
		err = net.ErrClosed
	}
	if err != nil {
		h.turn.Unlock()
		return nil, err
	}
	return h.ctx, nil
}

// close ends all calls with net.ErrClosed, later ones as well. Behind the call under way it
// runs leave, which waits for no peer. Further calls do nothing.
func (h *half) close(leave func()) {
	h.once.Do(func() {
		h.mu.Lock()
		h.closed = true
		h.end(net.ErrClosed)
		if h.timer != nil {
			h.timer.Stop()
		}
		h.mu.Unlock()
		h.empty()
		leave()
	})
}

// empty waits until the call under way has left. Those behind it learn that they
// came too late, and do not wait for what close does next.
func (h *half) empty() {
	h.turn.Lock()
	defer h.turn.Unlock()
}

// setDeadline moves the deadline; the zero time takes it away. Behind a deadline that has passed it makes
// another context: calls under way end all the same.
func (h *half) setDeadline(t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	if h.timer != nil && !h.timer.Stop() {
		<-h.ctx.Done() // by the timer, now
	}
	h.timer = nil
	if h.ctx.Err() != nil {
		h.init()
	}
	end, left := h.end, time.Until(t)
	switch {
	case t.IsZero():
	case left > 0:
		h.timer = time.AfterFunc(left, func() { end(os.ErrDeadlineExceeded) })
	default:
		end(os.ErrDeadlineExceeded)
	}
	return nil
}
