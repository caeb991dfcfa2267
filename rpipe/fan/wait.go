package fan

import (
	"context"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe"
)

// A waiter waits for words that the peers of many pipes write.
type waiter struct {
	team *team.Team
	over *rpipe.WindowPool // nil: the pipes lie on the fabric

	ready func() bool             // reports whether there is news
	slots func(slots []int) []int // appends the slots of the window that ready looks at
}

// wait returns when there is news.
func (w *waiter) wait(ctx context.Context) error {
	if w.over == nil {
		return w.team.Wait(ctx, w.ready)
	}
	u := w.over.Enlist()
	defer w.over.Dismiss(u)
	for !w.ready() {
		u.Slots = w.slots(u.Slots[:1])
		if done, err := w.over.Sleep(ctx, u, w.ready); done || err != nil {
			return err
		}
	}
	return nil
}
