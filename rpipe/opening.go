package rpipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A birth is an end that is about to be opened.
type birth struct {
	team *team.Team // counts incarnations
	name string     // that it counts by
	make func(incarnation int) (stopper, error)
	fail func(err error) error // says which end an error is of
}

// enter opens ends, each the next incarnation of its name, and looks after those
// that linger. All are made before other ranks can find any: ends of an opening that
// fails, for want of memory in the middle of thousands, count for nothing, and the
// pairs to come are those that would have come without it.
func (r *registry) enter(ctx context.Context, births ...birth) error {
	if err := r.opening.Take(ctx); err != nil {
		return births[0].fail(err)
	}
	defer r.opening.Give()
	r.mu.Lock()
	over := r.open == nil
	r.mu.Unlock()
	if over {
		return births[0].fail(runtime.ErrClosed)
	}
	r.sweep()
	ends := make([]stopper, 0, len(births))
	for i := range births {
		b := &births[i]
		s, err := b.make(b.team.Openings[b.name])
		if err != nil {
			return errors.Join(b.fail(err), r.undo(births, ends))
		}
		b.team.Openings[b.name]++
		ends = append(ends, s)
	}
	for i, s := range ends {
		// That fails with the job alone, or with the carrier: nobody finds any of them then.
		if err := s.appear(ctx); err != nil {
			return errors.Join(births[i].fail(err), r.undo(births, ends))
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
func (r *registry) undo(births []birth, ends []stopper) error {
	var errs []error
	for i, s := range ends {
		births[i].team.Openings[births[i].name]--
		errs = append(errs, s.release())
	}
	return errors.Join(errs...)
}

// reading is the birth of a reader's end, which end shows then.
func (p *pipe) reading(ctx context.Context, t *team.Team, end **readerEnd) birth {
	pair := &pairing{team: t, name: p.name, writer: p.peer, reader: p.rank}
	return p.birth("OpenReader", pair, readersEnd, func(incarnation int) (_ stopper, err error) {
		if err := p.plug(ctx, pair, incarnation, false); err != nil {
			return nil, err
		}
		if *end, err = newReaderEnd(p); err != nil {
			return nil, errors.Join(err, p.release())
		}
		return *end, nil
	})
}

// writing is the birth of a writer's end, which end shows then.
func (p *pipe) writing(ctx context.Context, t *team.Team, end **writerEnd) birth {
	pair := &pairing{team: t, name: p.name, writer: p.rank, reader: p.peer}
	return p.birth("OpenWriter", pair, writersEnd, func(incarnation int) (_ stopper, err error) {
		if err := p.plug(ctx, pair, incarnation, true); err != nil {
			return nil, err
		}
		if *end, err = newWriterEnd(p); err != nil {
			return nil, errors.Join(err, p.release())
		}
		return *end, nil
	})
}

func (p *pipe) birth(op string, pair *pairing, end string, open func(incarnation int) (stopper, error)) birth {
	return birth{team: pair.team, name: pair.key(end), make: open, fail: func(err error) error { return p.fail(op, err) }}
}

// OpenDuplex opens this rank's ends of two pipes with another rank of t, one each way:
// both or neither. out names the pipe that this rank writes, in the pipe that it reads;
// the other rank swaps them. opts are those of both pipes. The k-th pair that one rank
// opens meets the k-th of the other rank. Kind: local.
func OpenDuplex[T any](ctx context.Context, t *runtime.Team, peer int, out, in string, opts ...Option) (*Writer[T], *Reader[T], error) {
	ctx = wait.Context(ctx)
	opts = opts[:len(opts):len(opts)]
	var o opening
	w, err := addWriter[T](ctx, &o, t, peer, append(opts, WithName(out)))
	if err != nil {
		return nil, nil, err
	}
	r, err := addReader[T](ctx, &o, t, peer, append(opts, WithName(in)))
	if err == nil {
		err = o.open(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return w, r, nil
}

// An opening gathers ends that are opened together.
type opening struct {
	registry *registry
	births   []birth
}

// addReader gathers the end of a pipe from a rank. It is there once open was called.
func addReader[T any](ctx context.Context, o *opening, t *runtime.Team, writer int, opts []Option) (*Reader[T], error) {
	p, team, err := draft[T](t, writer, opts)
	if err != nil {
		return nil, p.fail("OpenReader", err)
	}
	r := &Reader[T]{}
	o.registry, o.births = p.registry, append(o.births, p.reading(ctx, team, &r.end))
	return r, nil
}

// addWriter gathers the end of a pipe to a rank. It is there once open was called.
func addWriter[T any](ctx context.Context, o *opening, t *runtime.Team, reader int, opts []Option) (*Writer[T], error) {
	p, team, err := draft[T](t, reader, opts)
	if err != nil {
		return nil, p.fail("OpenWriter", err)
	}
	w := &Writer[T]{}
	o.registry, o.births = p.registry, append(o.births, p.writing(ctx, team, &w.end))
	return w, nil
}

// addWriters gathers the ends of pipes to many ranks.
func addWriters[T any](ctx context.Context, o *opening, t *runtime.Team, readers []int, opts []Option) ([]*Writer[T], error) {
	writers := make([]*Writer[T], 0, len(readers))
	for _, reader := range readers {
		w, err := addWriter[T](ctx, o, t, reader, opts)
		if err != nil {
			return nil, err
		}
		writers = append(writers, w)
	}
	return writers, nil
}

// open opens what was gathered, which is not nothing.
func (o *opening) open(ctx context.Context) error { return o.registry.enter(ctx, o.births...) }
