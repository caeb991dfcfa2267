package fan

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A fanIn is an In without its element type.
//
// A scan finds the pipes whose words have changed. These are due: a read looks at each of them,
// until it finds nothing. Reads go by turns, in which each due pipe gives one block.
type fanIn struct {
	team    *team.Team
	summary *pipe.Summary
	id      *pipe.End // names the fan-in in errors that concern no single pipe
	pipes   []inPipe
	seen    []uint64     // the words as the last scans found them
	scanned int          // pipe at which the next scan goes on
	now     []int32      // pipes that are due in this turn
	at      int          // of now; pipes before it have had the turn
	next    []int32      // pipes that are due in the next turn
	turn    uint32       // number of the turn
	taken   int          // blocks since the last scan
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

// none is an arrival of no pipe.
var none = arrival{from: -1}

// newFanIn makes a fan-in of so many pipes. The caller sets their readers.
func newFanIn(s *pipe.Summary, name string, pipes int) *fanIn {
	f := &fanIn{team: s.Team, summary: s, health: s.Team.Health() - 1, id: &pipe.End{Rank: s.Team.Rank, Peer: -1, Name: name},
		pipes: make([]inPipe, pipes), seen: make([]uint64, pipes), turn: 1}
	f.open.Store(int64(pipes))
	f.news = f.hasNews
	return f
}

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
		if err := f.team.WaitStored(ctx, f.news); err != nil {
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

// take returns the next block that has arrived: of a pipe that is due in this turn, or in the next
// one, or that a scan of all words finds.
func (f *fanIn) take(ctx context.Context) (got arrival, ok bool, err error) {
	if f.closed.Load() {
		return none, false, pipe.ErrSelfClosed
	}
	f.checkHealth()
	got, ok, err = f.takeNow(ctx)
	for pass := 0; pass < 3 && !ok && err == nil; pass++ {
		f.endTurn(pass == 2)
		got, ok, err = f.takeNow(ctx)
	}
	if !ok && err == nil && f.open.Load() == 0 {
		err = io.EOF
	}
	return got, ok, err
}

// takeNow returns the next block of a pipe that is due in this turn.
func (f *fanIn) takeNow(ctx context.Context) (arrival, bool, error) {
	for f.at < len(f.now) {
		i := int(f.now[f.at])
		if f.at++; f.at < len(f.now) {
			f.pipes[f.now[f.at]].Prefetch()
		}
		if got, ok, err := f.look(ctx, i); ok || err != nil {
			f.taken++
			return got, ok, err
		}
	}
	return none, false, nil
}

// scanPerBlock is how many words a scan loads for each block taken since the last one. So reads
// do not load the words of thousands of idle pipes for each block of a busy one.
const scanPerBlock = 16

// endTurn scans words, all of them or in proportion to the blocks taken. It begins the next turn,
// unless the scan has found pipes that have not had this one. With all it begins it in any case.
func (f *fanIn) endTurn(all bool) {
	words := scanPerBlock * (f.taken + 1)
	if all {
		words = len(f.pipes)
	}
	f.taken = 0
	f.scan(words)
	if left := f.now[f.at:]; all || len(left) == 0 {
		f.now, f.next, f.at = append(f.next, left...), f.now[:0], 0
		f.turn++
	}
}
