// Package silence ends a connection whose other end does not answer for a bound.
//
//	look     look     look     look     look     look
//	ping ->  ping ->  ping ->  ping ->  ping ->  lost
//	  <- pong   (stopped)  1      2        3        4
//
// A watch sends a ping at every look, and counts the looks since the last byte of the other
// end. A process that is stopped does not look. So a stop counts as one look at most,
// however long it is, and the bound takes four.
package silence

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Least is the smallest bound. A busy machine may leave the other end without a core for
// that long.
const Least = 2 * time.Second

// Looks is the number of looks in a row without an answer that make up a bound.
const Looks = 4

// A Watch watches the other end of one connection. Its zero value has not started.
type Watch struct {
	heard  atomic.Bool // bytes came since the last look
	paused atomic.Bool

	mu    sync.Mutex
	bound time.Duration
	timer *time.Timer // nil before Start and after Stop
	empty int         // looks in a row without an answer
	ping  func()
	lost  func(bound time.Duration)
}

// Start starts the looks. Each calls ping, which must not wait, or lost once the other end was
// silent for bound, which is Least or more. Start counts as a sign of life.
func (w *Watch) Start(bound time.Duration, ping func(), lost func(bound time.Duration)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound, w.ping, w.lost = max(bound, Least), ping, lost
	w.heard.Store(true)
	w.timer = time.AfterFunc(w.bound/Looks, w.Look)
}

// Stop ends the looks. A look may still be in progress.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// Pause begins or ends a time in which silence does not count.
func (w *Watch) Pause(on bool) { w.paused.Store(on) }

// Heard reports whether bytes came since the last look.
func (w *Watch) Heard() bool { return w.heard.Load() }

// Bound returns the bound that Start got, or Least.
func (w *Watch) Bound() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bound
}

// Look looks once. The watch's timer calls it, and tests in its place.
func (w *Watch) Look() {
	if next := w.next(); next != nil {
		next()
	}
}

// next counts this look, sets the timer for the next one, and returns what this look does.
func (w *Watch) next() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return nil
	}
	heard, paused := w.heard.Swap(false), w.paused.Load()
	if heard || paused {
		w.empty = 0
	} else if w.empty++; w.empty == Looks {
		return func() { w.lost(w.bound) }
	}
	w.timer.Reset(w.bound / Looks)
	if paused {
		return nil
	}
	return w.ping
}

// Reader returns a reader of r that tells w of bytes. Every byte is a sign of life, also one
// in the middle of a long message.
func (w *Watch) Reader(r io.Reader) io.Reader { return hearing{r, w} }

// A hearing is the reader of a watched connection. It notes each time that bytes arrive.
type hearing struct {
	from io.Reader
	w    *Watch
}

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.from.Read(b)
	if n > 0 {
		h.w.heard.Store(true)
	}
	return n, err
}
