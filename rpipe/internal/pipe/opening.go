package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// An Opening gathers ends that are opened together: all of them or none. It keeps the first
// error. So a caller gathers ends, and looks at the result of Open alone.
type Opening struct {
	births []birth
	err    error
}

// A birth is an end that is about to be opened.
type birth struct {
	*End
	op    string             // the call of which errors tell
	key   string             // by which the team counts incarnations
	begin func(p *End) error // makes the part in which writers and readers differ
}

// Add gathers an end, which is open once Open has returned nil. op is the call of which errors
// tell. begin is called when the end's memory is there.
func Add[T any](o *Opening, op string, t *runtime.Team, peer int, writing bool, opts []Option, begin func(p *End) error) {
	if o.err != nil {
		return
	}
	p, err := Draft[T](t, peer, writing, opts)
	if err != nil {
		o.err = p.Fail(op, err)
		return
	}
	o.births = append(o.births, birth{p, op, p.key(), begin})
}

// Open opens the gathered ends. Precondition: one was added.
func (o *Opening) Open(ctx context.Context) error {
	if o.err != nil {
		return o.err
	}
	return o.births[0].Registry.enter(wait.Context(ctx), o.births)
}

// make makes the end.
func (b *birth) make(ctx context.Context) error {
	if err := b.plug(ctx, b.team.Openings[b.key]); err != nil {
		return err
	}
	if err := b.begin(b.End); err != nil {
		return errors.Join(err, b.Release())
	}
	b.team.Openings[b.key]++
	return nil
}

// make makes an end. If the memory lacks, closed ends give back theirs first, as far as they can.
func (r *Registry) make(ctx context.Context, b *birth) error {
	err := b.make(ctx)
	if errors.Is(err, runtime.ErrExhausted) {
		r.sweep(false)
		err = b.make(ctx)
	}
	return err
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
	r.sweepRecent()
	for i := range births {
		b := &births[i]
		if err := r.make(ctx, b); err != nil {
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
