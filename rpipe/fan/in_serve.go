package fan

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// visit looks at the pipes of a group, each in its turn, for the next block. If
// there is nothing, all that the word counted before was taken; it does not tell
// the truth if it says otherwise.
func (f *fanIn) visit(ctx context.Context, g *group) (arrival, bool, error) {
	word := f.tally.Word(g.first / pipe.GroupSize)
	for range g.n {
		i := g.first + g.turn
		if g.turn++; g.turn == g.n {
			g.turn = 0
		}
		if !f.mayHave(i) {
			continue
		}
		if got, ok, err := f.pop(ctx, i); ok || err != nil {
			return got, ok, err
		}
	}
	if g.full == 0 && word != g.met && (g.vague || int64(word-g.taken) > 0) {
		g.vague, g.met = true, word
		f.met = min(f.met, g.first) // perhaps a writer that differs has knocked
	}
	return nobody, false, nil
}

// mayHave reports whether a look at a pipe is not in vain from the start.
func (f *fanIn) mayHave(i int) bool {
	m := &f.pipes[i]
	return !m.over && (!m.full || m.doomed != nil || f.ends[i].HasArrived())
}

// pop returns the next block of a pipe, if there is one and room for it: a pipe
// that waits for its own blocks to be freed, or for its rank to answer, does not keep
// the others waiting.
func (f *fanIn) pop(ctx context.Context, i int) (arrival, bool, error) {
	f.looks.Add(1)
	r, m, g := f.ends[i], &f.pipes[i], &f.groups[i/pipe.GroupSize]
	r.Calling.Lock()
	defer r.Called()
	before := r.Taker.Count()
	asking, cancel := r.Briefly(ctx)
	defer cancel()
	a, mem, ok, err := r.TryRead(asking, false)
	if !ok && err == nil && m.doomed != nil && r.Progress() { // blocks that have arrived count
		a, mem, ok, err = r.TryRead(asking, false)
	}
	if errors.Is(err, rpipe.ErrWouldBlock) {
		err = nil
	}
	if err != nil && f.closed.Load() {
		return nobody, false, pipe.ErrSelfClosed // the pipe's memory may be gone
	}
	g.taken += r.Taker.Count() - before
	f.fills(i, !ok && (r.Have || r.Eof))
	f.listen(r, m, g)
	switch {
	case ok:
		return arrival{i, a, mem}, true, nil
	case errors.Is(err, io.EOF):
		f.retire(i, nil)
		return nobody, false, nil
	case err != nil && ctx.Err() != nil && r.Usable() == nil:
		return nobody, false, err
	case err == nil:
		err = m.doomed
	}
	if err != nil {
		f.retire(i, err)
	}
	return arrival{from: i}, false, err
}

// fills notes whether a pipe's next block, or its end, is taken and not handed out.
func (f *fanIn) fills(i int, full bool) {
	m, g := &f.pipes[i], &f.groups[i/pipe.GroupSize]
	switch {
	case full && !m.full:
		g.full++
	case !full && m.full:
		g.full--
	}
	m.full = full
}

// listen heeds that the writer waits for memory or width, which its group's word
// counts, too.
func (f *fanIn) listen(r *pipe.Reader, m *member, g *group) {
	if wants := r.Flag(r.WantedFlag()) >> pipe.WantsBits; wants != m.wants {
		g.taken += wants - m.wants
		m.wants = wants
	}
	r.Serve()
}

// retire has a pipe count as ended. The writer counted its puts behind the end as
// well.
func (f *fanIn) retire(i int, err error) {
	if r := f.ends[i]; !r.Eof {
		f.groups[i/pipe.GroupSize].vague = true
	}
	f.fills(i, false)
	f.pipes[i].over = true
	f.open.Add(-1)
	if f.ended != nil {
		f.ended(i, err)
	}
}
