package pipetest

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// crowded returns add for a queue that has no room while full is set.
func crowded(full *atomic.Bool, add func(ctx context.Context, n uint64) error) func(ctx context.Context, n uint64) error {
	return func(ctx context.Context, n uint64) error {
		if full.Load() {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return add(ctx, n)
	}
}

// Crowd has the counts of a writer's blocks find no room while full is set.
func Crowd(w *pipe.Writer, full *atomic.Bool) {
	u := &w.SummaryUpdate
	_ = u.To.Await(context.Background(), &u.Sum) // the composer is not in line
	u.Add, u.Word = crowded(full, u.Add), nil
}

// A SummaryUpdate adds to a counter of this process.
type SummaryUpdate struct {
	pipe.SummaryUpdate
	Full  atomic.Bool
	Sums  atomic.Uint64 // posted additions
	count atomic.Uint64
}

// NewSummaryUpdate returns an update to a peer whose queue is full while Full is set.
func NewSummaryUpdate(to *fabric.Peer) *SummaryUpdate {
	u := &SummaryUpdate{}
	u.Open(pipe.Count{To: to, Add: crowded(&u.Full, func(_ context.Context, n uint64) error {
		u.Sums.Add(1)
		u.count.Add(n)
		return nil
	})}, 0)
	return u
}

// Told returns the sum of the additions that were posted.
func (u *SummaryUpdate) Told() uint64 { return u.count.Load() }

// A closingMemory has the writer's flags find no room while full is set. It logs the order in which
// the last addition and the bye flag leave.
type closingMemory struct {
	fullMemory
	log chan<- string
}

func (m *closingMemory) Put(ctx context.Context, p fabric.Put) error {
	if p.Flag.Ahead {
		return m.fullMemory.Put(ctx, p)
	}
	err := m.PeerMemory.Put(ctx, p) // the bye flag alone overtakes no addition
	if err == nil {
		m.log <- "bye"
	}
	return err
}

// LogClosing has the writer's flags find no room while full is set. It sends "add" to log for each
// addition to the reader's summary, and "bye" for the last flag.
func LogClosing(w *pipe.Writer, full *atomic.Bool, log chan<- string) {
	u := &w.SummaryUpdate
	add := u.Add
	u.Add = func(ctx context.Context, n uint64) error {
		err := add(ctx, n)
		if err == nil {
			log <- "add"
		}
		return err
	}
	w.PeerMemory = &closingMemory{fullMemory{w.PeerMemory, full}, log}
}

// Meet connects the writer, and allocates no memory for its blocks.
func Meet(ctx context.Context, w *pipe.Writer) error {
	return w.Join(ctx, true)
}

// watchedCounts are words that call a function ahead of each load.
type watchedCounts struct {
	pipe.Counts
	ahead func()
}

func (c watchedCounts) Word(group int) uint64 {
	c.ahead()
	return c.Counts.Word(group)
}

// OnWord has the reader of a summary call ahead before each load of a word, until done.
func OnWord(y *pipe.Summary, ahead func()) (done func()) {
	plain := y.Counts
	y.Counts = watchedCounts{plain, ahead}
	return func() { y.Counts = plain }
}
