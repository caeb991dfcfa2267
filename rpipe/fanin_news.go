package rpipe

import "context"

// hasNews is what read waits for.
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

// hasSome tells that there is something to look at in a group.
func (f *fanIn) hasSome(g *group) bool {
	word := f.tally.word(g.first / groupSize)
	if int64(word-g.latest) < 0 {
		g.vague = true // counts grow
	}
	g.latest = word
	// More was taken than was counted: counts are on their way behind their blocks,
	// or a pipe's flags lie. The others' blocks must not wait for the word to catch up.
	ahead := int64(word-g.taken) < 0
	// What came behind a block without room is counted, and not there to be taken.
	if !g.vague && !ahead && g.full == 0 {
		return word != g.taken
	}
	for i := g.first; i < g.first+g.n; i++ {
		if m := &f.pipes[i]; f.mayHave(i) && (m.full || m.doomed != nil || f.ends[i].hasArrived()) {
			return true
		}
	}
	return false
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
		fate, known := fates[r.peer]
		if !known {
			fate = r.fate()
			fates[r.peer] = fate
		}
		if fate != nil && !f.pipes[i].over {
			f.pipes[i].doomed = fate
			f.groups[i/groupSize].vague = true
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
	if m.over || r.joined.Load() {
		return nil
	}
	r.calling.Lock()
	defer r.called()
	_, deserted, err := r.join(ctx, false)
	switch {
	case deserted:
		r.endsUnwritten(ctx)
		f.retire(i, nil)
	case err != nil && r.usable() != nil:
		m.doomed = err
		f.groups[i/groupSize].vague = true
	case err != nil && ctx.Err() != nil:
		f.met = i
		return err
	}
	return nil
}
