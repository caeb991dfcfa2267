package fan

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A fanIn is an In without its element type.
type fanIn struct {
	team    *team.Team
	summary *pipe.Summary
	id      *pipe.End // names the fan-in in errors that concern no single pipe
	pipes   []inPipe
	groups  []group
	next    int          // group at which the next read begins, or goes on
	open    atomic.Int64 // pipes that have not ended
	looks   atomic.Uint64
	probed  int    // pipes before this one: probe has looked for their writers
	health  uint64 // epoch as of the last checkHealth
	closed  atomic.Bool
	ends    bool // reads return the end of each pipe

	news func() bool // hasNews, made once

	// reading is held by calls that read. Close wakes a call that waits, and frees memory
	// after the call has ended.
	reading sync.Mutex
}

// A group is the pipes that share a word of the summary.
type group struct {
	first, n int
	turn
	blocked int    // pipes that are blocked
	taken   uint64 // takes from the pipes that the word counts, or is about to count
	word    uint64 // the word as this end saw it last
	// inexact: the word does not count the takes. A writer died, perhaps between a block
	// and its count, or a peer damaged the word. Reads then look at each pipe.
	inexact bool
	// ahead: more was taken than counted, and no look at all pipes has shown since that both
	// are equal. Counts are on their way behind their blocks, or a pipe's flags are false.
	// Blocks of the remaining pipes must not wait for the word.
	ahead  bool
	probed uint64 // the word at the last probe of all writers
}

// A turn takes a block from each pipe that has one as the turn begins. Its sets of pipes have
// a bit at the field of each.
type turn struct {
	due    uint32 // pipes at which it still looks
	seen   uint32 // pipes at which it has looked
	hits   uint32 // pipes that had a block
	shown  uint32 // pipes whose fields showed something as it began
	flowed uint32 // pipes whose fields showed nothing in a turn, and that had a block since in each
	took   bool   // a pipe had a block or a wait that was not counted, or an error
	number uint32
}

// none is an arrival of no pipe.
var none = arrival{from: -1}

func newFanIn(s *pipe.Summary, name string) *fanIn {
	f := &fanIn{team: s.Team, summary: s, health: s.Team.Health() - 1, id: &pipe.End{Rank: s.Team.Rank, Peer: -1, Name: name}}
	f.news = f.hasNews
	return f
}

// add adds the next pipe.
func (f *fanIn) add(r *pipe.Reader) {
	i := len(f.pipes)
	if i%pipe.GroupSize == 0 {
		f.groups = append(f.groups, group{first: i})
	}
	f.group(i).n++
	f.pipes = append(f.pipes, inPipe{Reader: r})
	f.open.Add(1)
}

// group returns the group of a pipe.
func (f *fanIn) group(i int) *group { return &f.groups[i/pipe.GroupSize] }

// read returns the next block of any pipe, and waits for one.
func (f *fanIn) read(ctx context.Context) (arrival, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	for {
		got, ok, err := f.take(ctx)
		if ok || err != nil {
			return got, err
		}
		if f.probed < len(f.pipes) {
			if err := f.probe(ctx); err != nil {
				return none, err
			}
			continue
		}
		if err := f.pipes[0].Layer.Err(); err != nil {
			return none, err
		}
		if err := f.team.Wait(ctx, f.news); err != nil {
			if got, ok, late := f.take(ctx); ok || late != nil {
				return got, late
			}
			return none, fmt.Errorf("%w (while %s)", err, f.missing())
		}
	}
}

// poll looks for a block once, and once more after making progress.
func (f *fanIn) poll() (got arrival, ok bool, err error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if got, ok, err = f.take(context.Background()); !ok && err == nil && f.pipes[0].Progress() {
		got, ok, err = f.take(context.Background())
	}
	if !ok && err == nil && f.probed < len(f.pipes) {
		if p := &f.pipes[f.probed]; !p.silent || p.Seeks() {
			err = f.probe(context.Background())
		}
	}
	return got, ok, err
}

// take returns the next block that has arrived, from the next group that has one.
func (f *fanIn) take(ctx context.Context) (arrival, bool, error) {
	if f.closed.Load() {
		return none, false, pipe.ErrSelfClosed
	}
	f.checkHealth()
	for range len(f.groups) + 1 { // a group that is in its turn has another one
		g, got, ok := &f.groups[f.next], none, false
		var err error
		if g.due != 0 || f.groupHasNews(g) {
			got, ok, err = f.takeFromGroup(ctx, g)
		}
		if g.due == 0 {
			f.next = (f.next + 1) % len(f.groups)
		}
		if ok || err != nil {
			return got, ok, err
		}
	}
	if f.open.Load() == 0 {
		return none, false, io.EOF
	}
	return none, false, nil
}

// takeFromGroup returns the next block of a group's turn, which it begins if there is none. If
// no pipe has one, all takes that the word counted before were taken: a word that says
// otherwise is inexact.
func (f *fanIn) takeFromGroup(ctx context.Context, g *group) (arrival, bool, error) {
	if g.due == 0 {
		g.begin()
	}
	for g.due != 0 {
		at := bits.TrailingZeros32(g.due)
		g.seen, g.due = g.seen|1<<at, g.due&(g.due-1)
		if g.due != 0 {
			f.pipes[g.first+bits.TrailingZeros32(g.due)/pipe.FieldBits].Prefetch()
		}
		if i := g.first + at/pipe.FieldBits; f.mayHaveNews(&f.pipes[i]) {
			before := g.taken
			got, ok, err := f.takeFromPipe(ctx, i)
			g.took = g.took || err != nil || g.taken != before
			if ok {
				g.hits |= 1 << at
			}
			if ok || err != nil {
				return got, ok, err
			}
		}
		g.widen(at)
	}
	if g.hits == 0 && !g.took && g.blocked == 0 && g.word != g.probed && (g.inexact || int64(g.word-g.taken) > 0) {
		g.inexact, g.probed = true, g.word
		f.probed = min(f.probed, g.first) // a writer that differs adds to the word, too
	}
	return none, false, nil
}

// mayHaveNews reports whether a turn looks at a pipe.
func (f *fanIn) mayHaveNews(p *inPipe) bool {
	return !p.ended && (!p.blocked || p.failing() || p.HasArrived())
}

// fields are the lowest bits of all fields of a word.
const fields = 1 << (pipe.FieldBits * pipe.GroupSize) / (1<<pipe.FieldBits - 1)

// all returns the set of all pipes.
func (g *group) all() uint32 { return fields >> (pipe.FieldBits * (pipe.GroupSize - g.n)) }

// begin begins a turn for the pipes that have something by their fields in the word. One of
// GroupSize turns is for all pipes, since a field may hide that fields below it flow over.
//
// A pipe that had a block although its field was 0 is due in each turn until it has none. So
// pipes that are always full have a block in each turn.
func (g *group) begin() {
	flowed := g.hits & (g.flowed | ^g.shown)
	g.turn = turn{due: g.all(), shown: g.all(), flowed: flowed, number: g.number + 1}
	if !g.hasFields() {
		return
	}
	untaken := g.word - g.taken
	g.shown &= uint32(untaken | untaken>>1)
	if untaken>>(pipe.FieldBits*g.n) != 0 {
		g.shown |= 1 << (pipe.FieldBits * (g.n - 1))
	}
	if g.number%pipe.GroupSize != 0 {
		g.due = g.shown | flowed
	}
}

// widen adds the pipe below one that has nothing, whose field may have flowed over. A turn
// that finds nothing looks at all pipes.
func (g *group) widen(at int) {
	g.due |= 1 << at >> pipe.FieldBits &^ g.seen
	if g.due == 0 && g.hits == 0 {
		g.due = g.all() &^ g.seen
	}
}
