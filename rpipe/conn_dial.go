package rpipe

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
	"github.com/gopgas/gopgas/runtime"
)

// Dial connects to a rank of t that listens, waiting until it does and accepts:
// ctx should end some time. A listener of the same name and options is meant. Any
// number of goroutines may dial; those that dial the same listener take turns.
// Kind: one-sided; waits for the listener.
func Dial(ctx context.Context, t *runtime.Team, rank int, opts ...Option) (*Conn, error) {
	ctx = wait.Context(ctx)
	d, err := doorTo(t, rank, opts)
	if err == nil {
		err = d.turn.Take(ctx)
	}
	if err != nil {
		return nil, &OpError{Op: "Dial", Pipe: "(new)", Rank: t.Rank(), Peer: rank, Err: err}
	}
	defer d.turn.Give()
	for {
		c, err := d.knock(ctx, opts)
		if !errors.Is(err, errReaderGone) {
			return c, err
		}
	}
}

// doors are those of other ranks' listeners that this rank has dialed.
type doors struct {
	mu    sync.Mutex
	doors map[string]*door
}

// Close has nothing to do: doors are pipes, which end with the job.
func (*doors) Close() {}

// A door is the way to a listener. It stays when the listener closes, and leads
// to the next one then.
type door struct {
	team   *runtime.Team
	rank   int // the listener's
	name   string
	turn   turn.Turn       // of who is at the door
	w      *Writer[uint64] // nil until it is needed
	number uint64          // of the next connection
	calls  []*Conn         // which the listener may not have heard, the latest last
}

func doorTo(t *runtime.Team, rank int, opts []Option) (*door, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, runtime.ErrTeam
	}
	team := team.Of(t)
	a, err := team.Attach("rpipe doors", func() fabric.Attachment { return &doors{doors: map[string]*door{}} })
	if err != nil {
		return nil, err
	}
	all := a.(*doors)
	key := RankAddr{t.Name(), rank}.String() + "/" + o.name
	all.mu.Lock()
	defer all.mu.Unlock()
	d := all.doors[key]
	if d == nil {
		d = &door{team: t, rank: rank, name: o.name, turn: turn.New()}
		all.doors[key] = d
	}
	return d, nil
}

// knock asks for one connection. errReaderGone: the listener closed meanwhile.
func (d *door) knock(ctx context.Context, opts []Option) (*Conn, error) {
	if d.w == nil {
		w, err := OpenWriter[uint64](ctx, d.team, d.rank, doorOptions(d.name)...)
		if err != nil {
			return nil, err
		}
		d.w = w
	}
	// While nobody listens, or has too much to answer, there is no connection yet.
	b, err := d.w.Alloc(ctx, 1)
	if err != nil {
		return nil, d.turnedAway(ctx, err)
	}
	c, err := d.call(ctx, b, opts)
	if err != nil {
		_ = d.w.Free(b) // unless the listener has it
		return nil, err
	}
	if err := d.answered(ctx, c); err != nil {
		_ = c.Close()
		return nil, d.turnedAway(ctx, err)
	}
	return c, nil
}

// call opens the next connection and tells the listener of it.
func (d *door) call(ctx context.Context, b Block[uint64], opts []Option) (*Conn, error) {
	number := d.number
	d.number++
	c, err := openConn(ctx, d.team, d.rank, dialed, slices.Concat(opts, []Option{numbered(int(number))}))
	if err != nil {
		return nil, err
	}
	b.Mem()[0] = number
	if err := d.w.Write(ctx, b); err != nil {
		c.disappear()
		return nil, err
	}
	d.calls = append(d.calls, c)
	d.calls = slices.Delete(d.calls, 0, len(d.calls)-d.unheard())
	return c, nil
}

// unheard is how many of the last calls the listener has not heard, as far as is
// known.
func (d *door) unheard() int {
	_ = d.w.end.takeCredit() // what is corrupt the next call meets
	return min(d.w.end.inFlight(), len(d.calls))
}

// turnedAway shuts the door if its listener has closed. The next one never hears of
// calls that this one did not.
func (d *door) turnedAway(ctx context.Context, err error) error {
	if !errors.Is(err, errReaderGone) {
		return err
	}
	for _, c := range d.calls[len(d.calls)-d.unheard():] {
		c.disappear()
	}
	_ = d.w.Close(ctx) // its reader has said all it has to say
	d.w, d.calls = nil, nil
	return err
}

// disappear closes a connection whose other end is never opened.
func (c *Conn) disappear() {
	c.reader.Alone(fabric.Key{})
	c.writer.Alone(fabric.Key{})
	_ = c.Close()
}

// answered waits until the listener has opened its end of c, or has closed. An end that
// the listener opened before it closed is found by one more look.
func (d *door) answered(dial context.Context, c *Conn) error {
	ctx, cancel := context.WithCancelCause(dial)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		end := d.w.end
		if end.await(ctx, []int{endFlag}, func() bool { return end.flag(endFlag) != 0 }) == nil {
			cancel(errReaderGone)
		}
	}()
	err := c.reader.end.meet(ctx)
	cancel(nil)
	<-watched
	if errors.Is(err, errReaderGone) {
		if joined, deserted, late := c.reader.end.join(dial, false); joined || late != nil {
			c.reader.end.eof, err = c.reader.end.eof || deserted, late
		}
	}
	return c.reader.end.fail("Dial", err)
}
