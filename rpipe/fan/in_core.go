package fan

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A fanIn is an In without its element type.
type fanIn struct {
	tally  *pipe.Summary
	team   *team.Team
	over   *rpipe.WindowPool // nil: the pipes lie on the fabric
	ends   []*pipe.Reader
	pipes  []member
	groups []group
	turn   int          // the group that comes next
	open   atomic.Int64 // pipes that have not ended
	looks  atomic.Uint64
	met    int         // pipes whose writers were looked for
	seen   uint64      // health, as it was last heeded
	ready  func() bool // hasNews, made once
	closed atomic.Bool
	ended  func(i int, err error) // nil, or called when a pipe has ended, with the reason
	byEnd  map[*pipe.End]int

	// calling is held by calls that read. Close wakes one that waits and takes
	// memory away only when it has left.
	calling sync.Mutex
}

// A member holds the fan-in's state of a pipe beside its end.
type member struct {
	over   bool
	full   bool   // its next block, or its end, is taken from the ring and not handed out: no room, or no answer
	silent bool   // its writer's rank did not answer in time
	doomed error  // the error of the writer's rank; blocks that have arrived are read first
	wants  uint64 // how often the writer has waited, as far as it was looked at
}

// A group is the pipes that share a word.
type group struct {
	first, n int
	turn     int    // the pipe that comes next, counted from first
	full     int    // pipes whose next blocks are taken and not handed out
	taken    uint64 // counted takes from the pipes; they may be ahead of the word
	latest   uint64 // the word
	// vague: the word does not tell. A writer died, perhaps between a block and its
	// count, or the word is not what writers made it. Then pipes are looked at.
	vague bool
	met   uint64 // the word as all writers were looked for last, since it counted what was not there
}

func newFanIn(y *pipe.Summary, n int, over *rpipe.WindowPool) *fanIn {
	f := &fanIn{tally: y, team: y.Team, over: over, seen: y.Team.Health() - 1, byEnd: make(map[*pipe.End]int, n)}
	f.ready = f.hasNews
	return f
}

// add takes in the next pipe.
func (f *fanIn) add(r *pipe.Reader) {
	i := len(f.ends)
	if i%pipe.GroupSize == 0 {
		f.groups = append(f.groups, group{first: i})
	}
	f.groups[i/pipe.GroupSize].n++
	f.ends, f.pipes = append(f.ends, r), append(f.pipes, member{})
	f.byEnd[r.End] = i
	f.open.Add(1)
}

// find returns which of the pipes it is, -1 if none.
func (f *fanIn) find(p *pipe.End) int {
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
		if err := f.wait(ctx); err != nil {
			if got, ok, late := f.take(ctx); ok || late != nil {
				return got, late
			}
			return nobody, fmt.Errorf("%w (while %s)", err, f.lack())
		}
	}
}

// poll is read that looks once, and once more after making progress.
func (f *fanIn) poll() (got arrival, ok bool, err error) {
	f.calling.Lock()
	defer f.calling.Unlock()
	if got, ok, err = f.take(context.Background()); !ok && err == nil && f.ends[0].Progress() {
		got, ok, err = f.take(context.Background())
	}
	if !ok && err == nil && f.met < len(f.ends) && (!f.pipes[f.met].silent || f.ends[f.met].Seeks()) {
		err = f.meetNext(context.Background())
	}
	return got, ok, err
}

// take returns the next block that is there: one of the group whose turn it is,
// if it has some, else of the next one that has.
func (f *fanIn) take(ctx context.Context) (arrival, bool, error) {
	if f.closed.Load() {
		return nobody, false, pipe.ErrSelfClosed
	}
	f.heed()
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

// An error of no pipe arrives with position nobody.
var nobody = arrival{from: -1}

// lack says what a read waits for.
func (f *fanIn) lack() string {
	full := 0
	for i, r := range f.ends {
		if f.pipes[i].full && !r.Books.HasRoom() {
			full++
		}
	}
	if full == 0 {
		return fmt.Sprintf("none of %d pipes had a block", f.open.Load())
	}
	return fmt.Sprintf("of %d pipes, %d had a block and no memory for it, which a Free gives, and the others had none", f.open.Load(), full)
}
