package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Events tell a rank of events at other ranks and at the launcher. Any of them
// may be nil. Goroutines of the client that do nothing else call them, so that a
// handler may use the client; it must not wait for [Client.Close]. The client
// calls none after a Close; one that already runs runs on.
type Events struct {
	// Call answers a request. Each runs in a goroutine of its own; ctx ends
	// with the client.
	Call func(ctx context.Context, from int, service string, payload []byte) ([]byte, error)
	// Tell takes a message of one peer. The client calls it for one message at a
	// time, per sender in the order of sending; it keeps later messages in
	// memory.
	Tell func(from int, service string, payload []byte)
	// Dead reports a rank's death, with the cause that its launcher saw.
	Dead func(rank int, cause string)
	// Abort reports that a rank gave the job up.
	Abort func(rank int, cause string)
	// Lost reports that the rendezvous is gone, or silent for too long. It is the
	// last event.
	Lost func(err error)
	// Silence bounds how long the rendezvous may leave the client without an
	// answer. It counts time in which this process runs. 0 takes DefaultSilence,
	// and less than 2 s takes 2 s.
	Silence time.Duration
}

// A Client is one rank's connection to the rendezvous. Its methods may be
// called from any goroutine.
type Client struct {
	rank, size int
	conn       net.Conn
	events     Events
	out        *queue[[]byte]
	news       *queue[message] // Dead, Abort
	tells      *queue[message]

	ctx    context.Context // ends with the connection; the cause is ErrClosed or wraps ErrLost
	cancel context.CancelCauseFunc
	io     sync.WaitGroup // reader and writer

	silence silence

	mu        sync.Mutex
	lastID    uint64
	calls     map[uint64]*call
	exchanges map[string]chan result
	gone      map[int]*PeerDeadError

	closing      sync.Once
	goodbyeAcked chan struct{} // closed when the server has acknowledged the goodbye
}

// result holds the outcome of a Call or Exchange.
type result struct {
	parts [][]byte
	err   error
}

type call struct {
	rank    int
	service string
	done    chan result // has room for the one result
}

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// maxCuts bounds how often Dial accepts a cut during the handshake: a flooded
	// server cuts honest ranks, too, and every server cuts clients without the secret.
	maxCuts = 5
)

// Dial connects to the rendezvous at addr and joins the job as rank. It tries
// again for some seconds if no server listens there yet, or if the server is so
// busy that it cuts newcomers.
func Dial(ctx context.Context, addr string, secret []byte, rank int, ev Events) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var dialer net.Dialer
	dialer.SetMultipathTCP(false)
	cuts := 0
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			var c *Client
			if c, err = NewClient(ctx, conn, secret, rank, ev); err == nil {
				return c, nil
			}
		}
		if errors.Is(err, ErrHandshake) {
			cuts++
		}
		if final(err) || cuts == maxCuts {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("join job at %s: %w", addr, err)
		case <-time.After(pause):
		}
	}
}

// final reports whether trying again cannot help.
func final(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) || errors.Is(err, ErrWire) || errors.Is(err, ErrArgument)
}

// NewClient joins the job as rank over conn, which it owns from now on. ctx
// bounds the handshake only.
func NewClient(ctx context.Context, conn net.Conn, secret []byte, rank int, ev Events) (*Client, error) {
	if rank < 0 {
		conn.Close()
		return nil, fmt.Errorf("%w: rank %d", ErrArgument, rank)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(handshakeTimeout)
	}
	conn.SetDeadline(deadline) //nolint:errcheck // a closed connection shows below
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	size, err := join(conn, secret, rank)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, handshakeError(ctx, err)
	}
	conn.SetDeadline(time.Time{}) //nolint:errcheck // as above
	c := &Client{
		rank: rank, size: size, conn: conn, events: ev,
		out: newQueue[[]byte](), news: newQueue[message](), tells: newQueue[message](),
		calls:        make(map[uint64]*call),
		exchanges:    make(map[string]chan result),
		gone:         make(map[int]*PeerDeadError),
		goodbyeAcked: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.listen(ev.Silence)
	c.io.Go(c.read)
	c.io.Go(c.write)
	go c.tell()
	go c.announce()
	return c, nil
}

// handshakeError explains a cut connection: the server cuts, without a word, a
// client that does not know the secret.
func handshakeError(ctx context.Context, err error) error {
	var refused *RefusedError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused), errors.Is(err, ErrHandshake), errors.Is(err, ErrWire):
		return err
	}
	return fmt.Errorf("%w (%w)", ErrHandshake, err)
}

// Rank returns this client's rank.
func (c *Client) Rank() int { return c.rank }

// Size returns the number of ranks in the job.
func (c *Client) Size() int { return c.size }

// Close takes leave of the rendezvous: the rank has left, which is not a death.
// It returns when the server has acknowledged, so that all earlier messages have
// arrived, or when ctx ends. Pending calls end with ErrClosed. Later calls do
// nothing.
func (c *Client) Close(ctx context.Context) error {
	return c.leave(ctx, message{kind: kindGoodbye, code: codeOK})
}

// Die is Close for a rank that counts as dead from now on, though its process
// lives: the other ranks get the death and its cause.
func (c *Client) Die(ctx context.Context, cause string) error {
	return c.leave(ctx, message{kind: kindGoodbye, code: codeDead, name: cut(cause)})
}

// leave ends the connection with a goodbye.
func (c *Client) leave(ctx context.Context, goodbye message) error {
	var err error
	c.closing.Do(func() {
		c.post(goodbye) //nolint:errcheck // fails when lost, seen below
		select {
		case <-c.goodbyeAcked:
		case <-c.ctx.Done():
			if err = context.Cause(c.ctx); errors.Is(err, ErrClosed) {
				err = nil
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		c.end(ErrClosed)
		c.io.Wait()
	})
	return err
}

// end ends the connection once, and all calls with it; cause is the error of
// later calls.
func (c *Client) end(cause error) {
	c.mu.Lock()
	first := c.ctx.Err() == nil
	c.cancel(cause)
	c.silence.timer.Stop()
	calls := c.calls // exchanges end by c.ctx
	c.calls, c.exchanges = make(map[uint64]*call), make(map[string]chan result)
	c.mu.Unlock()
	if !first {
		return
	}
	for _, call := range calls {
		call.done <- result{err: cause}
	}
	c.conn.Close()
	c.out.discard()
	if errors.Is(cause, ErrClosed) {
		c.tells.discard()
		c.news.discard()
		return
	}
	c.tells.close()
	c.news.close()
}

func (c *Client) write() {
	for frames := c.out.take(); frames != nil; frames = c.out.take() {
		buffers := net.Buffers(frames)
		if _, err := buffers.WriteTo(c.conn); err != nil {
			c.end(fmt.Errorf("%w: grun died or was killed (%w)", ErrLost, err))
			return
		}
	}
}

func (c *Client) read() {
	r := bufio.NewReader(hearing{c.conn, &c.silence})
	for {
		m, err := readMessage(r)
		if err != nil {
			c.end(fmt.Errorf("%w: grun died or was killed (%w)", ErrLost, err))
			return
		}
		c.handle(m)
	}
}
