package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// handle takes one message from the server. It runs in the reader and never waits
// for anything. News that a rank is gone goes through one queue with the aborts.
// So a call that ends because its rank has left ends after the news of the abort
// that made it leave.
func (c *Client) handle(m message) {
	switch m.kind {
	case kindExchange:
		c.finishExchange(m.name, result{parts: m.parts})
	case kindCall:
		go c.respond(m)
	case kindReply:
		c.finishCall(m)
	case kindOverflow:
		c.endCall(m, func(*call) result { return result{err: fmt.Errorf("rank %d: %w", m.rank, ErrOverflow)} })
	case kindTell:
		c.tells.put(m, 0)
	case kindDead, kindLeft, kindAbort, kindFailed:
		c.news.put(m, 0)
	case kindGoodbyeAck:
		c.goodbyeHeard()
	}
}

// exchangeError returns the error that a server's refusal of an exchange stands for.
func exchangeError(m message) error {
	switch m.code {
	case codeDead:
		return &PeerDeadError{Rank: m.rank, Cause: string(m.part())}
	case codeLeft:
		return &PeerDeadError{Rank: m.rank, Cause: "left the job", Left: true}
	case codeMissing:
		return &MissingError{Ranks: m.members, Wait: time.Duration(m.id)}
	case codeTooLarge:
		return ErrTooLarge
	}
	return fmt.Errorf("%w: key %q, differs at rank %d", ErrMismatch, m.name, m.rank)
}

// finishExchange hands a result to the exchange of a key. Its caller may have given up.
func (c *Client) finishExchange(key string, r result) {
	c.mu.Lock()
	done := c.exchanges[key]
	delete(c.exchanges, key)
	c.mu.Unlock()
	if done != nil {
		done <- r
	}
}

// finishCall ends the call to which a message is the response.
func (c *Client) finishCall(m message) {
	c.endCall(m, func(p *call) result {
		if m.code == codeOK {
			return result{parts: m.parts}
		}
		return result{err: &RemoteError{Rank: m.rank, Service: p.service, Message: string(m.part())}}
	})
}

// endCall gives the call of m its result, unless the caller has abandoned it.
func (c *Client) endCall(m message, outcome func(*call) result) {
	c.mu.Lock()
	p := c.calls[m.id]
	if p != nil && p.rank == m.rank {
		delete(c.calls, m.id)
	} else {
		p = nil
	}
	c.mu.Unlock()
	if p != nil {
		p.done <- outcome(p)
	}
}

// goodbyeHeard lets Close return. The reader alone calls it.
func (c *Client) goodbyeHeard() {
	select {
	case <-c.goodbyeAcked:
	default:
		close(c.goodbyeAcked)
	}
}

// markGone records that a rank answers no more and ends the calls to it.
func (c *Client) markGone(gone *PeerDeadError) {
	c.mu.Lock()
	c.gone[gone.Rank] = gone
	var calls []*call
	for id, p := range c.calls {
		if p.rank == gone.Rank {
			calls = append(calls, p)
			delete(c.calls, id)
		}
	}
	c.mu.Unlock()
	for _, p := range calls {
		p.done <- result{err: gone}
	}
}

// respond runs the handler for one call, and sends its result.
func (c *Client) respond(m message) {
	reply := message{kind: kindReply, rank: m.rank, id: m.id}
	err := errors.New("takes no calls")
	var payload []byte
	if c.events.Call != nil {
		payload, err = c.events.Call(c.ctx, m.rank, m.name, m.part())
	}
	reply.parts = [][]byte{payload}
	if err != nil {
		reply.code, reply.parts = codeError, [][]byte{[]byte(cut(err.Error()))}
	}
	if err := c.request(c.ctx, reply); errors.Is(err, ErrTooLarge) {
		reply.code, reply.parts = codeError, [][]byte{[]byte(err.Error())}
		c.request(c.ctx, reply) //nolint:errcheck // lost: the caller learns it from the server
	}
}

// tell hands out Tells, one at a time.
func (c *Client) tell() {
	c.tells.each(func(m message) {
		if c.events.Tell != nil {
			c.events.Tell(m.rank, m.name, m.part())
		}
	})
}

// announce hands out deaths and aborts in order of arrival, each before the calls that end by it.
// It hands out the loss of the rendezvous last.
func (c *Client) announce() {
	c.news.each(func(m message) {
		switch m.kind {
		case kindDead:
			if c.events.Dead != nil {
				c.events.Dead(m.rank, m.name)
			}
			c.markGone(&PeerDeadError{Rank: m.rank, Cause: m.name})
		case kindLeft:
			for _, rank := range m.members {
				c.markGone(&PeerDeadError{Rank: rank, Cause: "left the job", Left: true})
			}
		case kindFailed:
			c.finishExchange(m.name, result{err: exchangeError(m)})
		case kindAbort:
			if c.events.Abort != nil {
				c.events.Abort(m.rank, m.name)
			}
		}
	})
	if cause := context.Cause(c.ctx); errors.Is(cause, ErrLost) && c.events.Lost != nil {
		c.events.Lost(cause)
	}
}
