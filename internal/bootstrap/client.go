package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/gopgas/gopgas/internal/silence"
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
	// response. It counts time in which this process runs. 0 takes DefaultSilence,
	// and less than 2 s takes 2 s.
	Silence time.Duration
}

// A Client is one rank's connection to the rendezvous. Its methods may be
// called from any goroutine.
type Client struct {
	rank, size int
	hosted     bool // the rendezvous is in the process of rank 0
	conn       net.Conn
	reader     *bufio.Reader
	events     Events
	out        *queue[[]byte]
	news       *queue[message] // Dead, Abort
	tells      *queue[message]

	ctx    context.Context // ends with the connection; the cause is ErrClosed or wraps ErrLost
	cancel context.CancelCauseFunc
	io     sync.WaitGroup // reader and writer

	silence silence.Watch

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

// A call is one that waits for its response.
type call struct {
	rank    int
	service string
	done    chan result // has room for the one result
}

// NewClient joins the job as rank over conn, which it owns from now on. ctx
// bounds the handshake only.
func NewClient(ctx context.Context, conn net.Conn, secret []byte, rank int, ev Events) (*Client, error) {
	c, err := NewConn(ctx, conn, secret, Joining{Rank: rank})
	if err != nil {
		return nil, err
	}
	return c.Client(ev), nil
}

// Client returns the client of a rank that has joined. It owns the connection from now
// on.
func (c *Conn) Client(ev Events) *Client {
	client := &Client{
		rank: c.rank, size: c.size, hosted: c.hosted, conn: c.conn, reader: c.reader, events: ev,
		out: newQueue[[]byte](), news: newQueue[message](), tells: newQueue[message](),
		calls:        make(map[uint64]*call),
		exchanges:    make(map[string]chan result),
		gone:         make(map[int]*PeerDeadError),
		goodbyeAcked: make(chan struct{}),
	}
	client.ctx, client.cancel = context.WithCancelCause(context.Background())
	client.listen(ev.Silence)
	client.io.Go(client.read)
	client.io.Go(client.write)
	go client.tell()
	go client.announce()
	return client
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
	c.silence.Stop()
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

// write sends queued frames, as many as there are in one system call. It returns once the queue is
// closed, or the connection fails.
func (c *Client) write() {
	for frames := c.out.take(); frames != nil; frames = c.out.take() {
		buffers := net.Buffers(frames)
		if _, err := buffers.WriteTo(c.conn); err != nil {
			c.end(&LostError{Hosted: c.hosted, Cause: err})
			return
		}
	}
}

// read handles messages until the connection fails, which ends all calls under way.
func (c *Client) read() {
	r := c.silence.Reader(c.reader)
	for {
		m, err := readMessage(r)
		if err != nil {
			c.end(&LostError{Hosted: c.hosted, Cause: err})
			return
		}
		c.handle(m)
	}
}
