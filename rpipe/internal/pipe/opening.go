package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/runtime"
)

// An Opening gathers ends that are opened together.
type Opening struct{ births []birth }

// A birth is an end that is about to be opened.
type birth struct {
	*End
	op    string       // the call of which errors tell
	key   string       // by which the team counts incarnations
	begin func() error // makes the part in which writers and readers differ
}

// Add gathers an end, which is open once Open has returned nil. begin is called when the end's
// memory is there.
func (o *Opening) Add(p *End, op string, begin func() error) {
	o.births = append(o.births, birth{p, op, p.key(), begin})
}

// Open opens the gathered ends. Precondition: there is one.
func (o *Opening) Open(ctx context.Context) error {
	return o.births[0].Registry.enter(ctx, o.births)
}

// make makes the end.
func (b *birth) make(ctx context.Context) error {
	if err := b.plug(ctx, b.team.Openings[b.key]); err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return errors.Join(err, b.Release())
	}
	b.team.Openings[b.key]++
	return nil
}

// undo takes back ends that were made.
func undo(births []birth) error {
	var errs []error
	for i := range births {
		b := &births[i]
		b.team.Openings[b.key]--
		errs = append(errs, b.Release())
	}
	return errors.Join(errs...)
}

// enter opens ends, each the next incarnation of its name, and looks after those
// that are closed. All are made before other ranks can find any. So an opening that fails,
// for want of memory in the middle of thousands, counts for nothing: later ends pair as
// without it.
func (r *Registry) enter(ctx context.Context, births []birth) error {
	first := &births[0]
	if err := r.opening.Take(ctx); err != nil {
		return first.Fail(first.op, err)
	}
	defer r.opening.Give()
	r.mu.Lock()
	over := r.open == nil
	r.mu.Unlock()
	if over {
		return first.Fail(first.op, runtime.ErrClosed)
	}
	r.sweep()
	for i := range births {
		b := &births[i]
		if err := b.make(ctx); err != nil {
			return errors.Join(b.Fail(b.op, err), undo(births[:i]))
		}
	}
	for i := range births {
		b := &births[i]
		// Appear fails only if the job or the pool has ended: no rank finds any end then.
		if err := b.Appear(ctx); err != nil {
			return errors.Join(b.Fail(b.op, err), undo(births))
		}
	}
	r.mu.Lock() // Close has not been here: it waits for its turn to open
	defer r.mu.Unlock()
	for i := range births {
		r.open[births[i].End] = struct{}{}
	}
	return nil
}
