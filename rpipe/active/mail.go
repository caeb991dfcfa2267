package active

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// A mailer sends frames to all ranks of a team. Those for one rank share blocks.
type mailer struct {
	drops []drop
	clock batch.Clock
}

// A drop is where frames for one rank are put. Several goroutines come; the turn is
// theirs one after the other, and calls that wait for it look at their ctx.
type drop struct {
	batch.Batch[byte]
	turn    chan struct{}
	waiting atomic.Int32
}

func newMailer(writers []*rpipe.Writer[byte], o *config) *mailer {
	m := &mailer{drops: make([]drop, len(writers))}
	for to, w := range writers {
		d := &m.drops[to]
		d.Init(w, o.Bytes&^7)
		d.turn = make(chan struct{}, 1)
	}
	m.clock.Start(o.Bound, m.late)
	return m
}

// put has a frame carried to a rank. It waits for room there. now: it leaves at
// once, with what others want to send just now; else when there is more, or its
// time is up.
func (m *mailer) put(ctx context.Context, to int, f *frame, now bool) error {
	d := &m.drops[to]
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.leave()
	room, err := d.Space(ctx, frameSize(len(f.payload)), true)
	if err != nil {
		return err
	}
	f.encode(room)
	if d.Commit(len(room)) || now && (d.waiting.Load() == 0 || !m.clock.Runs()) {
		return d.Send(ctx, true)
	}
	m.clock.Arm()
	return nil
}

// enter waits for this goroutine's turn.
func (d *drop) enter(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
	default:
		d.waiting.Add(1)
		defer d.waiting.Add(-1)
		select {
		case d.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	d.Lock() // the clock tries it only
	return nil
}

func (d *drop) leave() {
	d.Unlock()
	<-d.turn
}

// late has all frames leave whose time is up.
func (m *mailer) late() (again bool) {
	for i := range m.drops {
		again = m.drops[i].Late() || again
	}
	return again
}

// finish has all frames leave, and tells all ranks that none follow.
func (m *mailer) finish(ctx context.Context) error {
	var errs []error
	for i := range m.drops {
		d := &m.drops[i]
		err := d.enter(ctx)
		if err == nil {
			err = d.Finish(ctx)
			d.leave()
		}
		errs = append(errs, err)
	}
	m.clock.Stop()
	return errors.Join(errs...)
}

// close ends the pipes. It waits for goroutines that still use one: close has told
// answering handlers to leave. The job's end gives a pipe back that stays in use.
func (m *mailer) close(ctx context.Context) error {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	var errs []error
	for i := range m.drops {
		d := &m.drops[i]
		err := d.enter(leaving)
		if err == nil {
			err = d.Writer.Close(ctx)
			d.leave()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
