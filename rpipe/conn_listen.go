package rpipe

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// A Listener accepts connections that ranks of its team dial:
//
//	dialer                                listener
//	opens number 7's pipes
//	7  ---------- its door ---------->    Accept opens the other ends
//	connects to one of them: Dial is done
//
// Each rank has a door here, a pipe of a few cache lines, which the first Dial
// opens at the other end and which serves all later ones. A team has one
// listener of a name at a rank at a time. Many goroutines may Accept.
type Listener struct {
	half
	team  *runtime.Team
	name  string
	opts  []Option
	doors []*Reader[uint64] // by rank; nil for one that broke its own
	first int               // whose door is looked at first: everyone's in turn
	held  *knock            // could not be let in yet
	gone  error             // what became of the job
	seen  uint64            // health as that was looked up
}

// A knock asks for a connection.
type knock struct {
	rank, number int
}

// The pipes of dialed connections, as the dialer opens them.
var dialed = route{out: "/call", in: "/answer"}

// doorOptions say what doors are like.
func doorOptions(name string) []Option {
	return []Option{WithName(name + "/door"), WithHeap(512), WithBlocks(8), WithWidth(8)}
}

// Listen has this rank accept connections that ranks of t dial, itself as well.
// opts are the connections'; Dial gives the same. It does not wait for dialers.
// Kind: local.
func Listen(ctx context.Context, t *runtime.Team, opts ...Option) (*Listener, error) {
	o, err := collect(opts)
	if t == nil {
		err = runtime.ErrTeam
	}
	if err != nil {
		return nil, &OpError{Op: "Listen", Pipe: "(new)", Rank: t.Rank(), Peer: -1, Err: err}
	}
	l := &Listener{team: t, name: o.name, opts: opts, doors: make([]*Reader[uint64], t.Size())}
	l.init()
	for rank := range l.doors {
		if l.doors[rank], err = OpenReader[uint64](ctx, t, rank, doorOptions(o.name)...); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Accept waits until a rank dials. Ranks get their turns. An error that is
// net.Error's Temporary says that there is no memory for the connection now: the
// dialer goes on waiting for the next Accept. Kind: local.
func (l *Listener) Accept() (net.Conn, error) {
	ctx, err := l.begin()
	if err != nil {
		return nil, l.failed(err)
	}
	defer l.turn.Unlock()
	if l.held == nil {
		if l.held, err = l.hear(ctx); err != nil {
			return nil, l.failed(err)
		}
	}
	c, err := openConn(ctx, l.team, l.held.rank, dialed.back(), slices.Concat(l.opts, []Option{numbered(l.held.number)}))
	if errors.Is(err, runtime.ErrExhausted) {
		return nil, l.failed(later{err})
	}
	l.held = nil
	if err != nil {
		return nil, l.failed(err)
	}
	return c, nil
}

// hear waits for a knock.
func (l *Listener) hear(ctx context.Context) (*knock, error) {
	f := team.Of(l.team)
	for {
		at := -1
		l.seen = f.Health() - 1
		err := f.Wait(ctx, func() bool {
			at = l.arrived()
			return at >= 0 || l.ended(f)
		})
		switch {
		case err != nil:
			return nil, err
		case at < 0:
			return nil, l.gone
		}
		if k := l.open(ctx, at); k != nil {
			return k, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// arrived returns at whose door something has arrived, -1 if there is none.
func (l *Listener) arrived() int {
	for i := range l.doors {
		rank := (l.first + i) % len(l.doors)
		if d := l.doors[rank]; d != nil && d.end.hasArrived() {
			return rank
		}
	}
	return -1
}

// ended looks for the job's end, where there is news.
func (l *Listener) ended(f *team.Team) bool {
	if now := f.Health(); now != l.seen {
		l.seen, l.gone = now, f.Fate(f.Members[f.Rank])
	}
	return l.gone != nil
}

// open takes a knock from a door. One that brings something else is shut for
// good: other ranks do not suffer from it. A rank that does not answer keeps its door,
// which is looked at again after all others.
func (l *Listener) open(ctx context.Context, rank int) *knock {
	l.first = rank + 1
	b, ok, err := l.doors[rank].tryRead(ctx)
	if err == nil && !ok || ctx.Err() != nil {
		return nil
	}
	if err == nil && b.Len() == 1 {
		number := b.Mem()[0]
		if err = l.doors[rank].Free(b); err == nil && number < maxNumber {
			return &knock{rank, int(number)}
		}
	}
	_ = l.doors[rank].Close(context.Background()) // its rank cannot be told
	l.doors[rank] = nil
	return nil
}

// maxNumber bounds the numbers of connections: they are counted.
const maxNumber = 1 << 62

// Close ends all Accepts with net.ErrClosed. Dials that wait go on to wait for
// another listener of this name. Connections that were accepted stay. Kind:
// one-sided; waits for nobody.
func (l *Listener) Close() error {
	l.close(func() {
		for _, d := range l.doors {
			if d != nil {
				_ = d.Close(context.Background()) // there is nobody to tell
			}
		}
	})
	return nil
}

// Addr returns a RankAddr.
func (l *Listener) Addr() net.Addr { return RankAddr{l.team.Name(), l.team.Rank()} }

func (l *Listener) failed(err error) error {
	return &net.OpError{Op: "accept", Net: network, Addr: l.Addr(), Err: plain(err)}
}

// later is an error that goes away.
type later struct{ error }

func (later) Temporary() bool { return true }
func (later) Timeout() bool   { return false }
func (e later) Unwrap() error { return e.error }
