package bootstrap

import (
	"io"
	"sync/atomic"
	"time"
)

// DefaultSilence bounds the silence of a rendezvous unless Events give a bound;
// leastSilence is the smallest bound. A busy machine may leave grun without a
// core for that long.
const (
	DefaultSilence = 30 * time.Second
	leastSilence   = 2 * time.Second
)

// looks is the number of looks in a row without an answer that make up a bound.
const looks = 4

// A silence asks the rendezvous at every look whether it still answers, and
// counts the looks since its last sign of life. A process that is stopped does
// not look. So a stop counts as one look at most, however long it is, and the
// bound takes four.
//
//	look     look     look     look     look     look
//	ping ->  ping ->  ping ->  ping ->  ping ->  lost
//	  <- pong   (stopped)  1      2        3        4
type silence struct {
	bound time.Duration
	timer *time.Timer // under the client's mutex
	heard atomic.Bool // bytes came since the last look
	empty int         // looks in a row without an answer; the timer's
}

// listen starts the looks.
func (c *Client) listen(bound time.Duration) {
	if bound <= 0 {
		bound = DefaultSilence
	}
	bound = max(bound, leastSilence)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silence.bound = bound
	c.silence.heard.Store(true)
	c.silence.timer = time.AfterFunc(bound/looks, c.look)
}

// look ends the connection if the rendezvous was silent for the bound.
func (c *Client) look() {
	s := &c.silence
	if s.heard.Swap(false) {
		s.empty = 0
	} else if s.empty++; s.empty == looks {
		c.end(&LostError{Hosted: c.hosted, Silence: s.bound})
		return
	}
	c.post(message{kind: kindPing}) //nolint:errcheck // fails when lost already
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil {
		s.timer.Reset(s.bound / looks)
	}
}

// hearing wraps the connection for the reader. Every byte is a sign of life, also one
// in the middle of a long message.
type hearing struct {
	from io.Reader
	s    *silence
}

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.from.Read(b)
	if n > 0 {
		h.s.heard.Store(true)
	}
	return n, err
}
