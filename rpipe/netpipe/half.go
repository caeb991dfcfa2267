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
	turn  sync.Mutex
	limit deadline
	end   context.CancelCauseFunc
	once  sync.Once
}

func (h *half) init() {
	life, end := context.WithCancelCause(context.Background())
	h.end = end
	h.limit.init(life)
}

// begin waits for the call's turn, which the caller gives back by turn.Unlock.
// The same deadline binds the call that has the turn meanwhile.
func (h *half) begin() (context.Context, error) {
	h.turn.Lock()
	ctx := h.limit.context()
	if err := h.limit.passed(ctx); err != nil {
		h.turn.Unlock()
		return nil, err
	}
	return ctx, nil
}

// close ends all calls with net.ErrClosed, later ones as well. Behind the call under way it
// runs leave, which waits for no peer. Further calls do nothing.
func (h *half) close(leave func()) {
	h.once.Do(func() {
		h.end(net.ErrClosed)
		h.limit.stop()
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

// A deadline is a context that ends at a time which can be moved. Once it has
// ended, set makes a new one: calls under way end all the same.
type deadline struct {
	mu     sync.Mutex
	parent context.Context
	ctx    context.Context
	expire context.CancelCauseFunc
	timer  *time.Timer
}

func (d *deadline) init(parent context.Context) {
	d.parent = parent
	d.ctx, d.expire = context.WithCancelCause(parent)
}

func (d *deadline) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ctx
}

// passed returns why calls under ctx end. A closed direction comes before a passed
// deadline.
func (d *deadline) passed(ctx context.Context) error {
	if d.parent.Err() != nil {
		return context.Cause(d.parent)
	}
	return context.Cause(ctx)
}

// set moves the deadline; the zero time takes it away.
func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parent.Err() != nil {
		return context.Cause(d.parent)
	}
	if d.timer != nil && !d.timer.Stop() {
		<-d.ctx.Done() // by the timer, now
	}
	d.timer = nil
	if d.ctx.Err() != nil {
		d.ctx, d.expire = context.WithCancelCause(d.parent)
	}
	if t.IsZero() {
		return nil
	}
	expire := d.expire
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { expire(os.ErrDeadlineExceeded) })
	} else {
		expire(os.ErrDeadlineExceeded)
	}
	return nil
}

// stop ends the timer. The parent has ended.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}
