package rpipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
)

// crowded is add behind a queue that has no room while full is set.
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
func (w *Writer[T]) Crowd(full *atomic.Bool) {
	u := &w.end.link.(*fabricLink).summaryUpdate
	_ = u.to.Await(context.Background(), &u.sum) // the composer is not in line
	u.add = crowded(full, u.add)
}

// A SummaryUpdate adds to a number, by sums.
type SummaryUpdate struct {
	summaryUpdate
	Full  atomic.Bool
	Sums  atomic.Uint64 // how many
	count atomic.Uint64
}

func NewSummaryUpdate(to *fabric.Peer) *SummaryUpdate {
	u := &SummaryUpdate{}
	u.open(to, crowded(&u.Full, func(_ context.Context, n uint64) error {
		u.Sums.Add(1)
		u.count.Add(n)
		return nil
	}))
	return u
}

func (u *SummaryUpdate) Tell() error  { return u.tell() }
func (u *SummaryUpdate) Told() uint64 { return u.count.Load() }

// A closingLink has the writer's flags find no room while full is set, and logs the
// order in which the last addition and the bye flag leave.
type closingLink struct {
	fullLink
	log chan<- string
}

func (l *closingLink) putLast(ctx context.Context, flag int, value uint64) error {
	err := l.fullLink.link.putLast(ctx, flag, value)
	if err == nil {
		l.log <- "bye"
	}
	return err
}

// LogClosing has the writer's flags find no room while full is set. log gets "add" for
// each addition to the reader's summary, and "bye" for the last flag.
func (w *Writer[T]) LogClosing(full *atomic.Bool, log chan<- string) {
	u := &w.end.link.(*fabricLink).summaryUpdate
	add := u.add
	u.add = func(ctx context.Context, n uint64) error {
		err := add(ctx, n)
		if err == nil {
			log <- "add"
		}
		return err
	}
	w.end.link = &closingLink{fullLink{w.end.link, full}, log}
}

// Meet connects the writer, and makes no memory for its blocks.
func (w *Writer[T]) Meet(ctx context.Context) error {
	_, _, err := w.end.join(ctx, true)
	return err
}
