package rpipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A fanIn is a FanIn without its element type.
type fanIn struct {
	tally  *tally
	team   *fabric.Team
	ends   []*readerEnd
	pipes  []member
	groups []group
	turn   int          // the group that comes next
	open   atomic.Int64 // pipes that have not ended
	looks  atomic.Uint64
	stuck  int         // a pipe whose block is taken from the ring and not handed out, as a call's context ended, or -1
	met    int         // pipes whose writers were looked for
	seen   uint64      // health, as it was last heeded
	ready  func() bool // hasNews, made once
	closed atomic.Bool
	ended  func(i int, err error) // nil, or what is told that a pipe has ended, and why
	byEnd  map[*pipe]int

	// calling is held by calls that read. Close wakes one that waits and takes
	// memory away only when it has left.
	calling sync.Mutex
}

// A member is what the fan-in knows of a pipe beside its end.
type member struct {
	over   bool
	full   bool   // its next block finds no room at this end before a Free
	doomed error  // what became of the writer; what has arrived is read first
	wants  uint64 // how often the writer has waited, as far as it was looked at
}

// A group is the pipes that share a word.
type group struct {
	first, n int
	turn     int    // the pipe that comes next, counted from first
	full     int    // pipes whose next blocks find no room
	taken    uint64 // what was taken, as far as the word counts it; it may be ahead of the word
	latest   uint64 // the word
	// vague: the word does not tell. A writer died, perhaps between a block and its
	// count, or the word is not what writers made it. Then pipes are looked at.
	vague bool
}

func newFanIn(y *tally, n int) *fanIn {
	f := &fanIn{tally: y, team: y.team, stuck: -1, seen: y.team.Health() - 1, byEnd: make(map[*pipe]int, n)}
	f.ready = f.hasNews
	return f
}

// add takes in the next pipe.
func (f *fanIn) add(r *readerEnd) {
	i := len(f.ends)
	if i%groupSize == 0 {
		f.groups = append(f.groups, group{first: i})
	}
	f.groups[i/groupSize].n++
	f.ends, f.pipes = append(f.ends, r), append(f.pipes, member{})
	f.byEnd[r.pipe] = i
	f.open.Add(1)
}

// find returns which of the pipes it is, -1 if none.
func (f *fanIn) find(p *pipe) int {
	if i, ok := f.byEnd[p]; ok {
		return i
	}
	return -1
}

// read returns the next block of any pipe, waiting for it.
func (f *fanIn) read(ctx context.Context) (arrival, error) {
	f.calling.Lock()
	defer f.calling.Unlock()
	for {
		got, ok, err := f.take(ctx)
		if ok || err != nil {
			return got, err
		}
		if f.met < len(f.ends) {
			if err := f.meetNext(ctx); err != nil {
				return nobody, err
			}
			continue
		}
		if err := f.team.Wait(ctx, f.ready); err != nil {
			if got, ok, late := f.take(ctx); ok || late != nil {
				return got, late
			}
			return nobody, fmt.Errorf("%w (while %s)", err, f.lack())
		}
	}
}

// lack says what a read waits for.
func (f *fanIn) lack() string {
	full := 0
	for i := range f.groups {
		full += f.groups[i].full
	}
	if full == 0 {
		return fmt.Sprintf("none of %d pipes had a block", f.open.Load())
	}
	return fmt.Sprintf("of %d pipes, %d had a block and no memory for it, which a Free gives, and the others had none", f.open.Load(), full)
}

// nobody is where errors come from that are of no pipe.
var nobody = arrival{from: -1}

// poll is read that looks once, and once more after making progress.
func (f *fanIn) poll() (got arrival, ok bool, err error) {
	f.calling.Lock()
	defer f.calling.Unlock()
	if got, ok, err = f.take(context.Background()); !ok && err == nil && f.team.Progress() {
		got, ok, err = f.take(context.Background())
	}
	if !ok && err == nil && f.met < len(f.ends) {
		err = f.meetNext(context.Background())
	}
	return got, ok, err
}

// take returns the next block that is there: one of the group whose turn it is,
// if it has some, else of the next one that has.
func (f *fanIn) take(ctx context.Context) (arrival, bool, error) {
	if f.closed.Load() {
		return nobody, false, errSelfClosed
	}
	f.heed()
	if f.stuck >= 0 {
		i := f.stuck
		f.stuck = -1
		if got, ok, err := f.pop(ctx, i); ok || err != nil {
			return got, ok, err
		}
	}
	for range f.groups {
		g := &f.groups[f.turn]
		if f.turn++; f.turn == len(f.groups) {
			f.turn = 0
		}
		if f.hasSome(g) {
			if got, ok, err := f.visit(ctx, g); ok || err != nil {
				return got, ok, err
			}
		}
	}
	if f.open.Load() == 0 {
		return nobody, false, io.EOF
	}
	return nobody, false, nil
}

// visit looks at the pipes of a group, each in its turn, for the next block. If
// there is nothing, all that the word counted before was taken; it does not tell
// the truth if it says otherwise.
func (f *fanIn) visit(ctx context.Context, g *group) (arrival, bool, error) {
	word := f.tally.word(g.first / groupSize)
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
	if !g.vague && g.full == 0 && int64(word-g.taken) > 0 {
		g.vague = true
		f.met = min(f.met, g.first) // perhaps a writer that differs has knocked
	}
	return nobody, false, nil
}

// mayHave tells that a look at a pipe is not in vain from the start.
func (f *fanIn) mayHave(i int) bool {
	m := &f.pipes[i]
	return !m.over && (!m.full || m.doomed != nil || f.hasRoom(i))
}

// hasRoom tells that a block for which there was no room may have some now.
func (f *fanIn) hasRoom(i int) bool {
	p, ok := f.ends[i].books.(*pulled)
	return !ok || p.hasRoom()
}

// pop returns the next block of a pipe, if there is one and room for it: a pipe
// that waits for its own blocks to be freed does not keep the others waiting.
func (f *fanIn) pop(ctx context.Context, i int) (arrival, bool, error) {
	f.looks.Add(1)
	r, m, g := f.ends[i], &f.pipes[i], &f.groups[i/groupSize]
	r.calling.Lock()
	defer r.calling.Unlock()
	before := r.taker.Count()
	a, mem, ok, err := r.tryRead(ctx, false)
	if !ok && err == nil && m.doomed != nil && f.team.Progress() { // what has arrived counts
		a, mem, ok, err = r.tryRead(ctx, false)
	}
	g.taken += r.taker.Count() - before
	f.fills(i, !ok && err == nil && r.have)
	f.listen(r, m, g)
	switch {
	case ok:
		return arrival{i, a, mem}, true, nil
	case errors.Is(err, io.EOF):
		f.retire(i, nil)
		return nobody, false, nil
	case f.closed.Load():
		return nobody, false, errSelfClosed
	case err != nil && ctx.Err() != nil && r.usable() == nil:
		f.stuck = i
		return nobody, false, err
	case err == nil:
		err = m.doomed
	}
	if err != nil {
		f.retire(i, err)
	}
	return arrival{from: i}, false, err
}

// fills notes whether a pipe's next block has no room.
func (f *fanIn) fills(i int, full bool) {
	m, g := &f.pipes[i], &f.groups[i/groupSize]
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
func (f *fanIn) listen(r *readerEnd, m *member, g *group) {
	if wants := r.flag(r.wantedFlag()) >> wantsBits; wants != m.wants {
		g.taken += wants - m.wants
		m.wants = wants
		r.serve()
	}
}

// retire has a pipe count as ended. What its writer put there beyond the end, it
// counted as well.
func (f *fanIn) retire(i int, err error) {
	if r := f.ends[i]; !r.eof {
		f.groups[i/groupSize].vague = true
	}
	f.fills(i, false)
	f.pipes[i].over = true
	f.open.Add(-1)
	if f.ended != nil {
		f.ended(i, err)
	}
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
	defer r.calling.Unlock()
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

// fail wraps an error that is of no pipe.
func (f *fanIn) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Pipe: f.ends[0].options.name, Rank: f.team.Rank, Peer: -1, Err: err}
}

func (f *fanIn) stats() FanInStats {
	s := FanInStats{Open: int(f.open.Load()), Looks: f.looks.Load()}
	for _, r := range f.ends {
		one := r.stats()
		s.Read += one.Read
		s.Held += one.Held
		s.Announcements += one.Announcements
	}
	return s
}

func (f *fanIn) close(ctx context.Context) error {
	if f.closed.Swap(true) {
		return nil
	}
	f.team.Bell().Ring() // a Read may wait
	var errs []error
	for _, r := range f.ends {
		errs = append(errs, r.pipe.fail("Close", r.close(ctx)))
	}
	f.calling.Lock() // it has left
	defer f.calling.Unlock()
	f.tally.drop(false)
	return errors.Join(errs...)
}
