package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// A Birth is an end that is about to be opened.
type Birth struct {
	Team *team.Team // counts incarnations
	Name string     // that it counts by
	Make func(incarnation int) (*End, error)
	Fail func(err error) error // says which end an error is of
}

// Enter opens ends, each the next incarnation of its name, and looks after those
// that are closed. All are made before other ranks can find any: ends of an opening that
// fails, for want of memory in the middle of thousands, count for nothing, and the
// pairs to come are those that would have come without it.
func (r *Registry) Enter(ctx context.Context, births ...Birth) error {
	if err := r.opening.Take(ctx); err != nil {
		return births[0].Fail(err)
	}
	defer r.opening.Give()
	r.mu.Lock()
	over := r.open == nil
	r.mu.Unlock()
	if over {
		return births[0].Fail(runtime.ErrClosed)
	}
	r.sweep()
	ends := make([]*End, 0, len(births))
	for i := range births {
		b := &births[i]
		s, err := b.Make(b.Team.Openings[b.Name])
		if err != nil {
			return errors.Join(b.Fail(err), r.undo(births, ends))
		}
		b.Team.Openings[b.Name]++
		ends = append(ends, s)
	}
	for i, s := range ends {
		// Appear fails only if the job or the pool has ended: no rank finds any end then.
		if err := s.Appear(ctx); err != nil {
			return errors.Join(births[i].Fail(err), r.undo(births, ends))
		}
	}
	r.mu.Lock() // Close has not been here: it waits for its turn to open
	defer r.mu.Unlock()
	for _, s := range ends {
		r.open[s] = struct{}{}
	}
	return nil
}

// undo takes back ends that were made.
func (r *Registry) undo(births []Birth, ends []*End) error {
	var errs []error
	for i, s := range ends {
		births[i].Team.Openings[births[i].Name]--
		errs = append(errs, s.Release())
	}
	return errors.Join(errs...)
}

// An Opening gathers ends that are opened together.
type Opening struct {
	registry *Registry
	births   []Birth
}

// Add gathers an end, which is open once Open has returned nil. begin makes the part in which
// writers, readers and the ends of heaps differ. op is the call of which errors tell.
func (o *Opening) Add(ctx context.Context, p *End, op string, begin func() error) {
	born := func(incarnation int) (*End, error) {
		if err := p.plug(ctx, incarnation); err != nil {
			return nil, err
		}
		if err := begin(); err != nil {
			return nil, errors.Join(err, p.Release())
		}
		return p, nil
	}
	fail := func(err error) error { return p.Fail(op, err) }
	o.registry, o.births = p.Registry, append(o.births, Birth{Team: p.team, Name: p.key(), Make: born, Fail: fail})
}

// Open opens the gathered ends. Precondition: there is one.
func (o *Opening) Open(ctx context.Context) error { return o.registry.Enter(ctx, o.births...) }
