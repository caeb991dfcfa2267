package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gopgas/gopgas/internal/identity"
)

const (
	dialTimeout      = 10 * time.Second
	connectTimeout   = 5 * time.Second // of one address, where others may answer
	handshakeTimeout = 10 * time.Second
	firstPause       = 5 * time.Millisecond
	lastPause        = 500 * time.Millisecond
	// maxCuts bounds how often Join accepts a cut behind its proof: a flooded server
	// cuts honest ranks, too, and every server cuts clients without the secret.
	maxCuts = 5
)

// Dial connects to the rendezvous at addr and joins the job as rank. It tries
// again for some seconds if no server listens there yet, or if the server is so
// busy that it cuts newcomers.
func Dial(ctx context.Context, addr string, secret []byte, rank int, ev Events) (*Client, error) {
	ctx, cancel := bound(ctx, dialTimeout)
	defer cancel()
	c, err := Join(ctx, addr, secret, Joining{Rank: rank})
	if err != nil {
		return nil, err
	}
	return c.Client(ev), nil
}

// bound gives a rank so much time to join. The cause of ctx's end says so.
func bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded))
}

// Join connects to the rendezvous at addr and joins its job. A name may have several
// addresses: Join tries all of them. It tries again until ctx ends, if no rendezvous
// listens there yet or if the name is not known yet.
func Join(ctx context.Context, addr string, secret []byte, j Joining) (*Conn, error) {
	return newDialer(addr, secret, j).join(ctx)
}

// A dialer tries to join one job.
type dialer struct {
	addr   string
	list   []netip.AddrPort // in place of the addresses of addr; nil: none
	secret []byte
	j      Joining
	// patient tries again where another job's rendezvous answers: the name may lead to the
	// right one later.
	patient bool
	cuts    int
	last    error // of the last try
}

func newDialer(addr string, secret []byte, j Joining) *dialer {
	return &dialer{addr: addr, secret: secret, j: j}
}

// join tries until it has joined, trying again cannot help, or ctx ends.
func (d *dialer) join(ctx context.Context) (c *Conn, err error) {
	err = d.repeat(ctx, func() bool {
		c = d.try(ctx)
		return c != nil
	})
	return c, err
}

// repeat calls try until it succeeds, trying again cannot help, or ctx ends.
func (d *dialer) repeat(ctx context.Context, try func() bool) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if try() {
			return nil
		}
		if ctx.Err() == nil && d.final() {
			return d.last
		}
		if err := sleep(ctx, pause); err != nil {
			return &DialError{Addr: d.addr, Last: d.last, Cause: err}
		}
	}
}

// sleep returns after d, or with the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// try tries each address once.
func (d *dialer) try(ctx context.Context) *Conn {
	addrs := d.list
	if addrs == nil {
		var err error
		if addrs, err = resolve(ctx, d.addr); err != nil {
			d.note(ctx, err)
			return nil
		}
	}
	var cut error
	for _, a := range addrs {
		c, err := d.dial(ctx, a.String())
		if err == nil {
			return c
		}
		d.note(ctx, err)
		if errors.Is(err, ErrHandshake) {
			cut = err
		} else if d.final() {
			return nil
		}
	}
	if cut != nil { // by a rendezvous: it says more than a silent address
		d.cuts++
		d.note(ctx, cut)
	}
	return nil
}

// note keeps an error that the end of ctx did not make.
func (d *dialer) note(ctx context.Context, err error) {
	if ctx.Err() == nil {
		d.last = err
	}
}

// dial joins at one address. All connections to a rendezvous begin here.
func (d *dialer) dial(ctx context.Context, addr string) (*Conn, error) {
	dialer := net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive}
	dialer.SetMultipathTCP(false)
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if d.j.TLS {
		if conn, err = encrypt(ctx, conn, d.secret); err != nil {
			return nil, err
		}
	}
	return NewConn(ctx, conn, d.secret, d.j)
}

// final reports whether trying again cannot help: only for a name that is not known yet,
// and for addresses at which no rendezvous answers yet, it can.
func (d *dialer) final() bool {
	var unknown *net.DNSError
	var unreached *net.OpError
	switch {
	case d.last == nil:
		return false
	case d.patient && (errors.Is(d.last, identity.ErrStranger) || errors.Is(d.last, ErrHandshake) || errors.Is(d.last, errVersion)):
		return false
	case errors.Is(d.last, identity.ErrStranger):
		return true
	case errors.Is(d.last, ErrHandshake):
		return d.cuts >= maxCuts
	case errors.Is(d.last, errNoChallenge), errors.As(d.last, &unknown):
		return false
	}
	return !errors.As(d.last, &unreached) || unreached.Op != "dial"
}

// A DialError reports that no rendezvous answered before the dialer gave up.
type DialError struct {
	Addr        string
	Last, Cause error // Last: of the last try, nil without one
}

func (e *DialError) Error() string {
	if e.Last == nil {
		return fmt.Sprintf("join job at %s: %v", e.Addr, e.Cause)
	}
	return fmt.Sprintf("join job at %s: %v: %v", e.Addr, e.Cause, e.Last)
}

func (e *DialError) Unwrap() error { return e.Cause }
