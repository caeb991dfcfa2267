package conveyor

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/rpipe/fan"
)

// ErrPhaseOver says that all ranks have ended the phase, and that this rank has pulled all
// its records.
var ErrPhaseOver = errors.New("all ranks have ended the phase")

// phases are the phases of the records that this rank pulls. An empty block ends a rank's
// phase. Each rank's blocks arrive in order, so the blocks behind it belong to later
// phases. A rank that is ahead may send as many of them as its pipe has room for.
type phases[T any] struct {
	over    uint64           // phases that all ranks have ended
	ended   []uint64         // by rank: phases that it has ended
	gone    []bool           // by rank: it has finished, or died
	changed bool             // a rank has ended a phase or gone since allEnded looked
	later   []fan.Arrival[T] // blocks of ranks that have ended the phase, in the order of arrival
	ready   []fan.Arrival[T] // blocks that were later ones before the last phase ended
}

// init begins the first phase, in a team of so many ranks.
func (p *phases[T]) init(ranks int) {
	p.ended, p.gone = make([]uint64, ranks), make([]bool, ranks)
}

// allEnded reports whether the phase is over, and begins the next one if so.
func (p *phases[T]) allEnded() bool {
	if !p.changed {
		return false
	}
	p.changed = false
	some := false
	for rank, n := range p.ended {
		if n == p.over && !p.gone[rank] {
			return false
		}
		some = some || n > p.over
	}
	if some {
		p.over++
		p.ready, p.later = append(p.ready, p.later...), p.later[:0]
	}
	return some
}

// takes returns whether a block of a rank belongs to the phase. It keeps one that does not.
func (p *phases[T]) takes(b fan.Arrival[T]) bool {
	if p.ended[b.From] > p.over {
		p.later = append(p.later, b)
		return false
	}
	return true
}

// nextBlock returns the next block of the phase that holds records.
func (c *Conveyor[T]) nextBlock(ctx context.Context, wait bool) (b fan.Arrival[T], err error) {
	p := &c.phases
	for {
		if p.allEnded() {
			return fan.Arrival[T]{From: -1}, ErrPhaseOver
		}
		b, err = c.arrival(ctx, wait)
		switch {
		case errors.Is(err, io.EOF) && b.From >= 0:
			p.gone[b.From], p.changed = true, true
		case err != nil:
			if b.From >= 0 {
				p.gone[b.From], p.changed = true, true
			}
			return b, err
		case !p.takes(b):
		case b.Len() > 0:
			return b, nil
		default:
			p.ended[b.From]++
			p.changed = true
			if err := c.in.Free(b.Block); err != nil {
				return b, err
			}
		}
	}
}

// arrival returns a block that waited for this phase, or else the next one that arrives.
func (c *Conveyor[T]) arrival(ctx context.Context, wait bool) (b fan.Arrival[T], err error) {
	switch p := &c.phases; {
	case len(p.ready) > 0:
		b, p.ready = p.ready[0], p.ready[1:]
	case wait:
		b.Block, b.From, err = c.in.Read(ctx)
	default:
		b.Block, b.From, err = c.in.TryRead()
	}
	return b, err
}
