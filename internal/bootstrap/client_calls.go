package bootstrap

import (
	"context"
	"errors"
	"fmt"
)

// Exchange is collective among members, which all name the same key and the same
// list of ranks with this one in it. It returns the bytes of all members in the
// order of members. It fails with *PeerDeadError if a member is dead, dies or has
// left, and with ErrMismatch if lists differ. If ctx ends, only this rank
// abandons the exchange: its bytes still count, and it gets an *AbandonedError.
// With any other error it fails at all members. Exchanges with different keys are
// independent; each key serves once.
func (c *Client) Exchange(ctx context.Context, key string, members []int, mine []byte) ([][]byte, error) {
	if err := c.checkMembers(members); err != nil {
		return nil, err
	}
	done := make(chan result, 1)
	c.mu.Lock()
	if _, busy := c.exchanges[key]; busy {
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: key %q is in use by this rank", ErrMismatch, key)
	}
	c.exchanges[key] = done
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		if c.exchanges[key] == done {
			delete(c.exchanges, key)
		}
		c.mu.Unlock()
	}()
	m := message{kind: kindExchange, name: key, members: members, parts: [][]byte{mine}}
	if err := c.request(ctx, m); err != nil {
		return nil, err
	}
	all, gaveUp, err := c.await(ctx, done)
	if gaveUp {
		return nil, &AbandonedError{err}
	}
	return all, err
}

// checkMembers refuses members that the server would refuse: there it would end the whole
// connection.
func (c *Client) checkMembers(members []int) error {
	seen := make([]bool, c.size)
	for _, r := range members {
		if r < 0 || r >= c.size {
			return fmt.Errorf("%w: member %d of %d ranks", ErrArgument, r, c.size)
		}
		if seen[r] {
			return fmt.Errorf("%w: member %d is there twice", ErrArgument, r)
		}
		seen[r] = true
	}
	if !seen[c.rank] {
		return fmt.Errorf("%w: rank %d is not among the members", ErrArgument, c.rank)
	}
	return nil
}

// Call sends payload to rank's Events.Call and returns the response. It waits for a
// rank that has not joined yet. A handler's error comes back as *RemoteError, a
// dead rank as *PeerDeadError. If ctx ends, the caller abandons the call; the
// handler runs on.
func (c *Client) Call(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
	if err := c.checkRank(rank); err != nil {
		return nil, err
	}
	p := &call{rank: rank, service: service, done: make(chan result, 1)}
	c.mu.Lock()
	if gone := c.gone[rank]; gone != nil {
		c.mu.Unlock()
		return nil, gone
	}
	c.lastID++
	id := c.lastID
	c.calls[id] = p
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}()
	m := message{kind: kindCall, rank: rank, id: id, name: service, parts: [][]byte{payload}}
	if err := c.request(ctx, m); err != nil {
		return nil, err
	}
	parts, _, err := c.await(ctx, p.done)
	if err != nil {
		return nil, err
	}
	return (&message{parts: parts}).part(), nil
}

// Tell sends payload to rank's Events.Tell. It returns once the message is
// queued; messages of one rank to another stay in order. A message to a dead rank
// is an error if this client knows of the death; otherwise the server drops it.
func (c *Client) Tell(rank int, service string, payload []byte) error {
	if err := c.checkRank(rank); err != nil {
		return err
	}
	c.mu.Lock()
	gone := c.gone[rank]
	c.mu.Unlock()
	if gone != nil {
		return gone
	}
	return c.request(c.ctx, message{kind: kindTell, rank: rank, name: service, parts: [][]byte{payload}})
}

// Abort tells every other rank and the launcher that this rank gives the job up.
func (c *Client) Abort(cause string) error {
	return c.post(message{kind: kindAbort, name: cut(cause)})
}

// Report hands the launcher something under a name, such as "stats".
func (c *Client) Report(name string, payload []byte) error {
	return c.request(c.ctx, message{kind: kindReport, name: name, parts: [][]byte{payload}})
}

// checkRank returns ErrArgument for a rank that the job does not have.
func (c *Client) checkRank(rank int) error {
	if rank < 0 || rank >= c.size {
		return fmt.Errorf("%w: rank %d of %d", ErrArgument, rank, c.size)
	}
	return nil
}

// request queues m for the server, waiting for room. A queued message counts even
// if ctx has ended: the other ranks may have acted on it.
func (c *Client) request(ctx context.Context, m message) error {
	frame, err := m.frame()
	if err != nil {
		return err
	}
	err = c.out.waitPut(ctx, frame, len(frame))
	if errors.Is(err, ErrClosed) {
		return context.Cause(c.ctx)
	}
	return err
}

// post queues m even when the queue is full.
func (c *Client) post(m message) error {
	frame, err := m.frame()
	if err != nil {
		return err
	}
	if !c.out.put(frame, len(frame)) {
		return context.Cause(c.ctx)
	}
	return nil
}

// await prefers a result to the end of ctx or of the connection, since the other ranks
// have that result, too. The result gaveUp reports that there is none.
func (c *Client) await(ctx context.Context, done chan result) (parts [][]byte, gaveUp bool, err error) {
	var cause error
	select {
	case r := <-done:
		return r.parts, false, r.err
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-c.ctx.Done():
		cause = context.Cause(c.ctx)
	}
	select {
	case r := <-done:
		return r.parts, false, r.err
	default:
		return nil, true, cause
	}
}

// cut shortens a cause to the longest that a message can carry.
func cut(cause string) string { return cause[:min(len(cause), maxName)] }
