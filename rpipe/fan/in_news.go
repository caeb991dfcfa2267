package fan

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// wait waits until there is news.
func (f *fanIn) wait(ctx context.Context) error {
	if f.over == nil {
		return f.team.Wait(ctx, f.ready)
	}
	u := f.over.Enlist()
	defer f.over.Dismiss(u)
	for !f.ready() {
		u.Slots = f.watched(u.Slots[:1])
		if done, err := f.over.Sleep(ctx, u, f.ready); done || err != nil {
			return err
		}
	}
	return nil
}

// watched adds the slots that ready looks at: counts, and where those do not tell,
// the flags of pipes.
func (f *fanIn) watched(slots []int) []int {
	slots = append(slots, f.tally.Counts.(*pipe.WindowCounts).Slots...)
	for i := range f.groups {
		g := &f.groups[i]
		if f.countsTell(g) {
			continue
		}
		for k := g.first; k < g.first+g.n; k++ {
			if r := f.ends[k]; !f.pipes[k].over {
				flags := r.Link.(*pipe.WindowLink).Slots
				slots = append(slots, flags[r.Taker.Index()], flags[r.WantedFlag()])
			}
		}
	}
	return slots
}

// hasNews reports whether a waiting read must look again.
func (f *fanIn) hasNews() bool {
	if f.closed.Load() || f.team.Health() != f.seen {
		return true
	}
	for i := range f.groups {
		if f.hasSome(&f.groups[i]) {
			return true
		}
	}
	return false
}

// hasSome reports whether there is something to look at in a group.
func (f *fanIn) hasSome(g *group) bool {
	word := f.tally.Word(g.first / pipe.GroupSize)
	if int64(word-g.latest) < 0 {
		g.vague = true // counts grow
	}
	g.latest = word
	if f.countsTell(g) {
		return word != g.taken
	}
	if g.vague && g.full == 0 && word != g.met {
		return true
	}
	for i := g.first; i < g.first+g.n; i++ {
		if m := &f.pipes[i]; !m.over && (m.doomed != nil || f.ends[i].HasArrived()) {
			return true
		}
	}
	return false
}

// countsTell reports whether the word shows whether there is something, as it was last
// looked at.
func (f *fanIn) countsTell(g *group) bool {
	// More was taken than was counted: counts are on their way behind their blocks,
	// or a pipe's flags lie. Blocks of the remaining pipes must not wait for the word.
	ahead := int64(g.latest-g.taken) < 0
	// Blocks behind one that is not handed out are counted, and cannot be taken.
	return !g.vague && !ahead && g.full == 0
}

// heed learns of ranks that are gone.
func (f *fanIn) heed() {
	now := f.team.Health()
	if now == f.seen {
		return
	}
	f.seen = now
	fates := map[int]error{}
	for i, r := range f.ends {
		fate, known := fates[r.Peer]
		if !known {
			fate = r.Fate()
			fates[r.Peer] = fate
		}
		if fate != nil && !f.pipes[i].over {
			f.pipes[i].doomed = fate
			f.groups[i/pipe.GroupSize].vague = true
		}
	}
}

// meetNext looks for the writer of the next pipe. One that comes later announces
// itself by what it puts, but one that has closed already is heard of in no other
// way, nor is one that differs.
func (f *fanIn) meetNext(ctx context.Context) error {
	i := f.met
	f.met++
	r, m := f.ends[i], &f.pipes[i]
	if m.over || r.Joined.Load() {
		return nil
	}
	r.Calling.Lock()
	defer r.Called()
	asking, cancel := r.Briefly(ctx) // nor do the others' blocks, and Close, wait for a rank that does not answer
	defer cancel()
	_, deserted, err := r.Join(asking, false)
	m.silent = errors.Is(err, rpipe.ErrWouldBlock)
	switch {
	case deserted:
		r.Eof = true
		f.fills(i, true) // the end comes next
	case err != nil && r.Usable() != nil:
		m.doomed = err
		f.groups[i/pipe.GroupSize].vague = true
	case err != nil && ctx.Err() != nil:
		f.met = i
		return err
	case m.silent:
		f.met = i
	}
	return nil
}
