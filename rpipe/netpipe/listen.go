package netpipe

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Listener accepts connections that ranks of its team dial. Each rank has two pipes of
// a few cache lines with it. The first Dial opens their dialer's ends; all later Dials
// use them too. A team has one listener of a name at a rank at a time. Any number of
// goroutines may call Accept.
type Listener struct {
	half
	team    *runtime.Team
	with    *config
	asks    *rpipe.FanIn[byte]
	answers []*rpipe.Writer[byte] // by rank
	late    sync.WaitGroup        // answers to ranks that do not answer themselves
	held    int                   // a rank that asked and could not be let in yet, or noRank
	gone    error                 // the error of the last rank that was lost
}

const noRank = -1

// The pipes of dialed connections, as the dialer opens them.
var dialed = route{out: "/call", in: "/answer"}

// The pipes of a door. A rank asks for one connection at a time.
func asks(name string) string    { return name + "/asks" }
func answers(name string) string { return name + "/answers" }

var doorOptions = []rpipe.Option{rpipe.WithHeap(128), rpipe.WithBlocks(2), rpipe.WithWidth(2)}

// Listen has this rank accept connections that ranks of t dial, itself as well. opts
// apply to the connections; Dial gives the same. Listen does not wait for dialers.
// Kind: local.
func Listen(ctx context.Context, t *runtime.Team, opts ...Option) (*Listener, error) {
	ctx = wait.Context(ctx)
	l := &Listener{team: t, with: collect(opts), held: noRank}
	var err error
	l.asks, l.answers, err = rpipe.OpenMesh[byte](ctx, t, asks(l.with.name), answers(l.with.name), doorOptions...)
	if err != nil {
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
	if err := l.hear(ctx); err != nil {
		return nil, l.failed(err)
	}
	c, err := openConn(ctx, l.team, l.held, dialed.back(), l.with)
	if errors.Is(err, runtime.ErrExhausted) {
		return nil, l.failed(later{err})
	}
	rank := l.held
	l.held = noRank
	if err != nil {
		return nil, l.failed(err)
	}
	l.answer(rank)
	return c, nil
}

// hear waits until a rank asks. An error of one rank is that rank's alone: it is dead,
// or scribbles over its pipe, which the listener does not look at any more. Where all
// ranks are lost, the job has ended.
func (l *Listener) hear(ctx context.Context) error {
	for l.held == noRank {
		b, from, err := l.asks.Read(ctx)
		switch {
		case err == nil:
			l.held = from
			_ = l.asks.Free(b)
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

// answer tells a rank that the listener has opened its end. A rank that is stopped gets
// the answer from a goroutine of its own.
func (l *Listener) answer(rank int) {
	w := l.answers[rank]
	if !errors.Is(w.TrySend(nil), rpipe.ErrWouldBlock) {
		return // a rank that is gone needs no answer
	}
	l.late.Go(func() { _ = w.Send(l.life(), nil) })
}

// Close ends all Accepts with net.ErrClosed. Waiting Dials wait for the next listener
// of this name. Accepted connections stay. Kind: one-sided; does not wait for dialers.
func (l *Listener) Close() error {
	l.close(func() {
		l.late.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // ends that could not tell the dialer do so later, by themselves
		for _, w := range l.answers {
			_ = w.Close(ctx)
		}
		_ = l.asks.Close(ctx)
	})
	return nil
}

// Addr returns a RankAddr.
func (l *Listener) Addr() net.Addr { return RankAddr{l.team.Name(), l.team.Rank()} }

func (l *Listener) failed(err error) error {
	return &net.OpError{Op: "accept", Net: network, Addr: l.Addr(), Err: plain(err)}
}

// later wraps a temporary error.
type later struct{ error }

func (later) Temporary() bool { return true }
func (later) Timeout() bool   { return false }
func (e later) Unwrap() error { return e.error }
