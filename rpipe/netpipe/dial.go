package netpipe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
	"github.com/gopgas/gopgas/runtime"
)

// Dial connects to a rank of t that listens, waiting until it does and accepts:
// ctx should end some time. A listener of the same name and options is meant. Any
// number of goroutines may dial; those that dial the same listener take turns.
// Kind: one-sided; waits for the listener.
func Dial(ctx context.Context, t *runtime.Team, rank int, opts ...Option) (*Conn, error) {
	ctx = wait.Context(ctx)
	with, err := collect(opts)
	if err != nil {
		return nil, failed("Dial", t, rank, err)
	}
	d, err := doorTo(t, rank, with.name)
	if err == nil {
		err = d.turn.Take(ctx)
	}
	if err != nil {
		return nil, failed("Dial", t, rank, err)
	}
	c, err := d.dial(ctx, with)
	if d.waits {
		go d.disappoint(with)
	} else {
		d.turn.Give()
	}
	return c, err
}

// doors are those of listeners that this rank has dialed.
type doors struct {
	mu    sync.Mutex
	doors map[string]*door
}

// Close does nothing: doors consist of pipes, which end with the job.
func (*doors) Close() {}

// A door connects a dialer to the listeners of a rank: a pipe with room for one block, the request for a
// connection. It stays when a listener closes, and reaches the next one then.
//
//	dialer                                   listener
//	writes the block     --- request ------> Accept opens an end
//	opens its end        <-- freed memory -- and frees the block
//
// The dialer opens its end behind the listener's, so a call that gives up leaves no memory.
// The dialer's k-th end is the peer of the listener's k-th end.
type door struct {
	team     *runtime.Team
	rank     int // the listener's
	name     string
	turn     turn.Turn           // of the goroutine that dials
	requests *rpipe.Writer[byte] // nil until it is needed
	waits    bool                // for the response to a request
	behind   int                 // ends that the listener has opened and this rank could not
}

// doorTo returns the door to the listener of a name at a rank. All dials of this process to one
// listener share it.
func doorTo(t *runtime.Team, rank int, name string) (*door, error) {
	if t == nil {
		return nil, runtime.ErrTeam
	}
	a, err := team.Of(t).Attach("netpipe", func() fabric.Attachment { return &doors{doors: map[string]*door{}} })
	if err != nil {
		return nil, err
	}
	all := a.(*doors)
	key := RankAddr{t.Name(), rank}.String() + "/" + name
	all.mu.Lock()
	defer all.mu.Unlock()
	d := all.doors[key]
	if d == nil {
		d = &door{team: t, rank: rank, name: name, turn: turn.New()}
		all.doors[key] = d
	}
	return d, nil
}

// errGone: the listener has closed.
var errGone = errors.New("the listener has closed")

// dial makes a connection, waiting for one listener after the other.
func (d *door) dial(ctx context.Context, with *config) (*Conn, error) {
	for {
		err := d.request(ctx, with)
		if err == nil {
			err = d.awaitEnd(ctx)
		}
		if err == nil {
			return d.enter(ctx, with)
		}
		if !errors.Is(err, errGone) {
			return nil, err
		}
		d.shut(ctx)
	}
}

// request requests one connection. It waits while the rank does not listen.
func (d *door) request(ctx context.Context, with *config) error {
	for ; d.behind > 0; d.behind-- {
		c, err := openConn(ctx, d.team, d.rank, dialed, with)
		if err != nil {
			return err
		}
		_ = c.Close()
	}
	if d.requests == nil {
		w, err := rpipe.OpenWriter[byte](ctx, d.team, d.rank, requestOptions(d.name)...)
		if err != nil {
			return err
		}
		d.requests = w
	}
	err := d.requests.Send(ctx, nil)
	if errors.Is(err, rpipe.ErrClosed) {
		return errGone
	}
	d.waits = err == nil
	return err
}

// awaitEnd waits until the listener has opened its end: it frees the request then. A listener that has
// closed may have done so before.
func (d *door) awaitEnd(ctx context.Context) error {
	b, err := d.requests.Alloc(ctx, 0)
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	d.waits = false
	if errors.Is(err, rpipe.ErrClosed) {
		return d.listenerGone(ctx)
	}
	if err != nil {
		return err
	}
	return d.requests.Free(b)
}

// listenerGone returns errGone, unless the listener has accepted the request before it closed.
func (d *door) listenerGone(ctx context.Context) error {
	end := (*pipe.TypedWriter[byte])(d.requests).End()
	if end.Tags.Take(ctx) == nil && end.Heap.Live() == 0 {
		return nil
	}
	return errGone
}

// enter opens this rank's end, and connects it: then the two are known to fit.
func (d *door) enter(ctx context.Context, with *config) (*Conn, error) {
	c, err := openConn(ctx, d.team, d.rank, dialed, with)
	if err != nil {
		d.behind++
		return nil, err
	}
	if err := c.reader.Connect(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// disappoint waits for the response to a call that has given up. It ends the connection
// that the listener has opened for that call, and gives the call's turn back.
func (d *door) disappoint(with *config) {
	defer d.turn.Give()
	if err := d.awaitEnd(context.Background()); err == nil {
		if c, err := d.enter(context.Background(), with); err == nil {
			_ = c.Close()
		}
	}
	d.waits = false
}

// shut closes the door of a listener that has closed. The next call opens another one.
func (d *door) shut(ctx context.Context) {
	_ = d.requests.Close(ctx) // the listener reads nothing more
	d.requests = nil
}

// failed wraps what an operation of package netpipe failed with.
func failed(op string, t *runtime.Team, peer int, err error) error {
	return &rpipe.OpError{Op: op, Pipe: "(new)", Rank: t.Rank(), Peer: peer, Err: err}
}

var errSelf = fmt.Errorf("%w: a connection to oneself has two ends; use Listen and Dial", runtime.ErrRange)
