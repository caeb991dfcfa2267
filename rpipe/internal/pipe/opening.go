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

// reading is the birth of a reader's end, which end shows then.
func (p *End) reading(ctx context.Context, t *team.Team, end **Reader) Birth {
	pair := &Pairing{Team: t, Name: p.Name, Writer: p.Peer, Reader: p.Rank}
	return p.birth("OpenReader", pair, readersEnd, func(incarnation int) (_ *End, err error) {
		if err := p.plug(ctx, pair, incarnation, false); err != nil {
			return nil, err
		}
		if *end, err = newReaderEnd(p); err != nil {
			return nil, errors.Join(err, p.Release())
		}
		return p, nil
	})
}

// writing is the birth of a writer's end, which end shows then.
func (p *End) writing(ctx context.Context, t *team.Team, end **Writer) Birth {
	pair := &Pairing{Team: t, Name: p.Name, Writer: p.Rank, Reader: p.Peer}
	return p.birth("OpenWriter", pair, writersEnd, func(incarnation int) (_ *End, err error) {
		if err := p.plug(ctx, pair, incarnation, true); err != nil {
			return nil, err
		}
		if *end, err = newWriterEnd(p); err != nil {
			return nil, errors.Join(err, p.Release())
		}
		return p, nil
	})
}

func (p *End) birth(op string, pair *Pairing, end string, open func(incarnation int) (*End, error)) Birth {
	return Birth{Team: pair.Team, Name: pair.Key(end), Make: open, Fail: func(err error) error { return p.Fail(op, err) }}
}

// An Opening gathers ends that are opened together.
type Opening struct {
	Registry *Registry
	Births   []Birth
}

// Open opens the gathered ends. Precondition: there is one.
func (o *Opening) Open(ctx context.Context) error { return o.Registry.Enter(ctx, o.Births...) }
