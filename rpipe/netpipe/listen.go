package netpipe

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
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
	asks    *fan.In[byte]
	answers []*answers // by rank
	held    int        // a rank that asked and could not be let in yet, or noRank
	gone    error      // the error of the last rank that was lost
}

// answers is the pipe to one rank. One goroutine at a time uses it: a rank that has read
// an answer may ask again before the call that sent the answer has returned.
type answers struct {
	turn sync.Mutex
	w    *rpipe.Writer[byte]
	late sync.WaitGroup // of goroutines that wait for the rank
}

const noRank = -1

// The pipes of dialed connections, as the dialer opens them.
var dialed = route{out: "/call", in: "/answer"}

// The pipes of a door. A rank asks for one connection at a time.
func asksOf(name string) string    { return name + "/asks" }
func answersOf(name string) string { return name + "/answers" }

var doorOptions = []rpipe.Option{rpipe.WithHeap(128), rpipe.WithBlocks(2), rpipe.WithWidth(2)}

// Listen has this rank accept connections that ranks of t dial, itself as well. opts
// apply to the connections; Dial gives the same. Listen does not wait for dialers.
// Kind: local.
func Listen(ctx context.Context, t *runtime.Team, opts ...Option) (*Listener, error) {
	ctx = wait.Context(ctx)
	with, err := collect(opts)
	if err != nil {
		return nil, failed("Listen", t, noRank, err)
	}
	l := &Listener{team: t, with: with, held: noRank}
	m, err := fan.OpenMesh[byte](ctx, t, fan.Names{From: asksOf(l.with.name), To: answersOf(l.with.name)}, doorOptions...)
	if err != nil {
		return nil, failed("Listen", t, noRank, err)
	}
	l.asks = m.In
	for _, w := range m.Out {
		l.answers = append(l.answers, &answers{w: w})
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

// answer tells a rank that the listener has opened its end. If the rank is stopped, a
// goroutine waits for it. The answer leaves even if the listener closes meanwhile:
// otherwise the next ends that the two ranks open would not belong together.
func (l *Listener) answer(rank int) {
	a := l.answers[rank]
	if a.turn.TryLock() {
		err := a.w.TrySend(nil)
		a.turn.Unlock()
		if !errors.Is(err, rpipe.ErrWouldBlock) {
			return // a rank that is gone needs no answer
		}
	}
	a.late.Go(func() {
		a.turn.Lock()
		defer a.turn.Unlock()
		_ = a.w.Send(context.Background(), nil) // ends with the rank's death or the job
	})
}

// Close ends all Accepts with net.ErrClosed. Waiting Dials wait for the next listener
// of this name. Accepted connections stay. Kind: one-sided; does not wait for dialers.
func (l *Listener) Close() error {
	l.close(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // ends that could not tell the dialer do so later, by themselves
		for _, a := range l.answers {
			go func() { // a stopped rank delays no other one
				a.late.Wait()
				_ = a.w.Close(ctx)
			}()
		}
		go func() { _ = l.asks.Close(ctx) }()
	})
	return nil
}

// Addr returns a RankAddr. Kind: local.
func (l *Listener) Addr() net.Addr { return RankAddr{l.team.Name(), l.team.Rank()} }

func (l *Listener) failed(err error) error {
	return &net.OpError{Op: "accept", Net: network, Addr: l.Addr(), Err: plain(err)}
}

// later wraps a temporary error.
type later struct{ error }

func (later) Temporary() bool { return true }
func (later) Timeout() bool   { return false }
func (e later) Unwrap() error { return e.error }
