package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// A Conn is the connection of a rank that has joined its job and has no [Client] yet.
// Messages of the rendezvous wait in the connection until the Client takes them.
type Conn struct {
	rank, size int
	hosted     bool
	wait       time.Duration
	conn       net.Conn
	reader     *bufio.Reader
}

// startKey is the key of the exchange by which a job starts without a launcher.
const startKey = "start"

// NewConn joins a job over conn, which it owns from now on. ctx bounds it.
func NewConn(ctx context.Context, conn net.Conn, secret []byte, j Joining) (*Conn, error) {
	if j.Rank < AnyRank || j.Size < 0 {
		conn.Close()
		return nil, fmt.Errorf("%w: rank %d of %d", ErrArgument, j.Rank, j.Size)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	session := newSession(secret, j)
	var w welcome
	err := session.bind(conn)
	if err == nil {
		w, err = shake(ctx, conn, session)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	conn.SetDeadline(time.Time{}) //nolint:errcheck // a closed connection shows at the next use
	return &Conn{rank: w.rank, size: w.size, hosted: w.hosted, wait: j.Wait, conn: conn, reader: bufio.NewReader(conn)}, nil
}

// shake runs the client's side of the handshake. A rendezvous must send its challenge
// within handshakeTimeout. It may take as long as ctx allows to admit the rank.
func shake(ctx context.Context, conn net.Conn, s *session) (w welcome, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout)) //nolint:errcheck // a closed connection shows below
	switch err := s.challenge(conn); {
	case errors.Is(err, errVersion):
		return w, err
	case err != nil:
		return w, fmt.Errorf("%w (%w)", errNoChallenge, err)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(handshakeTimeout)
	}
	conn.SetDeadline(deadline) //nolint:errcheck // as above
	w, err = s.join(conn)
	var refused *RefusedError
	if err == nil || errors.As(err, &refused) || errors.Is(err, ErrHandshake) || errors.Is(err, ErrWire) {
		return w, err
	}
	// The server cuts, without a word, a client that does not know the secret.
	return w, fmt.Errorf("%w (%w)", ErrHandshake, err)
}

// Rank returns the number of this rank, which the rendezvous may have chosen.
func (c *Conn) Rank() int { return c.rank }

// Start hands the bytes of each rank to all, once all ranks have joined. All ranks of
// the job call it, before [Conn.Client]. It fails with *MissingError if ranks do not join
// in time, and with *PeerDeadError if one dies before. ctx bounds it.
func (c *Conn) Start(ctx context.Context, mine []byte) ([][]byte, error) {
	if c.wait > 0 {
		// The rendezvous counts from the first join on, and so ends this wait before.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.wait+DefaultSilence, &LostError{Hosted: c.hosted, Silence: DefaultSilence})
		defer cancel()
	}
	members := make([]int, c.size)
	for r := range members {
		members[r] = r
	}
	frame, err := (&message{kind: kindExchange, name: startKey, members: members, parts: [][]byte{mine}}).frame()
	if err != nil {
		return nil, err
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.conn.SetDeadline(time.Now()) //nolint:errcheck // as above
		close(stopped)
	})
	cards, err := c.exchange(frame)
	if stop() {
		return cards, err
	}
	<-stopped
	c.conn.SetDeadline(time.Time{}) //nolint:errcheck // for the goodbye
	return nil, context.Cause(ctx)
}

// exchange sends the frame of an exchange and returns its result. All news that comes
// first is of ranks that are gone, and so the exchange fails by it.
func (c *Conn) exchange(frame []byte) ([][]byte, error) {
	if _, err := c.conn.Write(frame); err != nil {
		return nil, c.lost(err)
	}
	for {
		m, err := readMessage(c.reader)
		if err != nil {
			return nil, c.lost(err)
		}
		switch m.kind {
		case kindExchange:
			return m.parts, nil
		case kindFailed:
			return nil, exchangeError(m)
		case kindDead, kindLeft:
		default:
			return nil, fmt.Errorf("%w: kind %d before the start", ErrWire, m.kind)
		}
	}
}

// lost returns the error of a rendezvous that is gone or silent.
func (c *Conn) lost(err error) error { return &LostError{Hosted: c.hosted, Cause: err} }
