package netpipe

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// A Listener accepts connections that ranks of its team dial. Each rank has a pipe of
// a few cache lines to it. The first Dial opens its dialer's end; all later Dials
// use it too. A team has one listener of a name at a rank at a time. Any number of
// goroutines may call Accept.
type Listener struct {
	half
	team     *runtime.Team
	with     *config
	requests *fan.In[byte]
	request  fan.Arrival[byte] // of a rank that dials and has no connection yet; else From is noRank
	gone     error             // the error of the last rank that was lost
}

const noRank = -1

// The pipes of dialed connections, as the dialer opens them.
var dialed = route{out: "/dialer", in: "/listener"}

// requestOptions returns the options of a door's pipe. A rank requests one connection at a time.
func requestOptions(name string) []rpipe.Option {
	return []rpipe.Option{rpipe.WithName(name + "/requests"), rpipe.WithHeap(64), rpipe.WithBlocks(1), rpipe.WithWidth(1)}
}

// Listen has this rank accept connections that ranks of t dial, itself as well. opts
// apply to the connections; Dial gives the same. Listen does not wait for dialers.
// Kind: local.
func Listen(ctx context.Context, t *runtime.Team, opts ...Option) (*Listener, error) {
	ctx = wait.Context(ctx)
	with, err := collect(opts)
	if err == nil && t == nil {
		err = runtime.ErrTeam
	}
	if err != nil {
		return nil, failed("Listen", t, noRank, err)
	}
	all := make([]int, t.Size())
	for i := range all {
		all[i] = i
	}
	l := &Listener{team: t, with: with}
	l.request.From = noRank
	if l.requests, err = fan.OpenIn[byte](ctx, t, all, requestOptions(with.name)...); err != nil {
		return nil, failed("Listen", t, noRank, err)
	}
	l.init()
	return l, nil
}

// Accept waits until a rank dials. Ranks take turns. A temporary net.Error reports that
// this rank has no memory for the connection now: the dialer waits for the next Accept.
// Kind: local.
func (l *Listener) Accept() (net.Conn, error) {
	ctx, err := l.begin()
	if err != nil {
		return nil, l.failed(err)
	}
	defer l.turn.Unlock()
	if err := l.awaitRequest(ctx); err != nil {
		return nil, l.failed(err)
	}
	c, err := openConn(ctx, l.team, l.request.From, dialed.back(), l.with)
	if errors.Is(err, runtime.ErrExhausted) {
		return nil, l.failed(later{err})
	}
	l.request.From = noRank
	if err != nil {
		return nil, l.failed(err)
	}
	_ = l.requests.Free(l.request.Block) // the response; a rank that is gone needs none
	return c, nil
}

// awaitRequest waits until a rank dials. An error of one rank is that rank's alone: it is dead,
// or scribbles over its pipe, which the listener does not look at any more. Where all
// ranks are lost, the job has ended.
func (l *Listener) awaitRequest(ctx context.Context) error {
	for l.request.From == noRank {
		b, from, err := l.requests.Read(ctx)
		switch {
		case err == nil:
			l.request = fan.Arrival[byte]{Block: b, From: from}
		case from != noRank:
			l.gone = err
		case errors.Is(err, io.EOF):
			return l.gone
		default:
			return err
		}
	}
	return nil
}

// Close ends all Accepts with net.ErrClosed. Waiting Dials wait for the next listener
// of this name. Accepted connections stay. Kind: one-sided; does not wait for dialers.
func (l *Listener) Close() error {
	l.close(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // ends that could not tell the dialer do so later, by themselves
		go func() { _ = l.requests.Close(ctx) }()
	})
	return nil
}

// Addr returns a RankAddr. Kind: local.
func (l *Listener) Addr() net.Addr { return RankAddr{l.team.Name(), l.team.Rank()} }

// failed wraps an error of Accept as package net does.
func (l *Listener) failed(err error) error {
	return &net.OpError{Op: "accept", Net: network, Addr: l.Addr(), Err: plain(err)}
}

// later wraps a temporary error.
type later struct{ error }

// Temporary implements net.Error: a server may call Accept again.
func (later) Temporary() bool { return true }

// Timeout implements net.Error.
func (later) Timeout() bool { return false }

// Unwrap returns the cause.
func (e later) Unwrap() error { return e.error }
