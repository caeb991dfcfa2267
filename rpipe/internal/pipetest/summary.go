package pipetest

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A setter stores a number in a word of a summary.
type setter = func(ctx context.Context, value uint64) error

// crowded returns set for a queue that has no room while full is set.
func crowded(full *atomic.Bool, set setter) setter {
	return func(ctx context.Context, value uint64) error {
		if full.Load() {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return set(ctx, value)
	}
}

// Crowd has the numbers behind a writer's blocks find no room while full is set.
func Crowd(w *pipe.Writer, full *atomic.Bool) {
	u := &w.SummaryUpdate
	_ = u.To.Await(context.Background(), &u.Composer) // the composer is not in line
	u.Set, u.Word = crowded(full, u.Set), nil
}

// A SummaryUpdate stores numbers in a word of this process.
type SummaryUpdate struct {
	pipe.SummaryUpdate
	Full   atomic.Bool
	Stores atomic.Uint64 // posted numbers
	Told   atomic.Uint64 // the last of them
}

// NewSummaryUpdate returns an update to a peer whose queue is full while Full is set.
func NewSummaryUpdate(to *fabric.Peer) *SummaryUpdate {
	u := &SummaryUpdate{}
	u.To, u.Composer.Compose, u.Step = to, u.Repeat, 1
	u.Set = crowded(&u.Full, func(_ context.Context, value uint64) error {
		u.Stores.Add(1)
		u.Told.Store(value)
		return nil
	})
	return u
}

// A closingMemory has the writer's flags find no room while full is set. It logs the order in which
// the last number and the bye flag leave.
type closingMemory struct {
	fullMemory
	log chan<- string
}

// Put puts the bye flag although the queue is full, and tells the log once it was posted. Other flags
// find no room.
func (m *closingMemory) Put(ctx context.Context, p fabric.Put) error {
	if p.Flag.Value != 1 { // no notification
		return m.fullMemory.Put(ctx, p)
	}
	err := m.PeerMemory.Put(ctx, p)
	if err == nil {
		m.log <- "bye"
	}
	return err
}

// LogClosing has the writer's flags find no room while full is set. It sends "number" to log for each
// number in the reader's summary, and "bye" for the last flag.
func LogClosing(w *pipe.Writer, full *atomic.Bool, log chan<- string) {
	u := &w.SummaryUpdate
	set := u.Set
	u.Set = func(ctx context.Context, value uint64) error {
		err := set(ctx, value)
		if err == nil {
			log <- "number"
		}
		return err
	}
	w.PeerMemory = &closingMemory{fullMemory{w.PeerMemory, full}, log}
}

// Meet connects the writer, and allocates no memory for its blocks.
func Meet(ctx context.Context, w *pipe.Writer) error {
	return w.Join(ctx, true)
}
