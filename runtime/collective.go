package runtime

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gopgas/gopgas/internal/fabric"
)

// enter begins a collective call and returns its number. leave ends it.
func (t *Team) enter(c fabric.Collective) (uint64, error) {
	if !t.calling.TryLock() {
		return 0, fmt.Errorf("team %s: %w: %s began while another collective call of this rank was under way; "+
			"make them one at a time, or split a team for each goroutine", t.name, ErrMismatch, c)
	}
	if err := t.err(); err != nil {
		t.calling.Unlock()
		return 0, err
	}
	t.seq++
	return t.seq, nil
}

func (t *Team) leave() { t.calling.Unlock() }

// sync is the barrier of all collective calls.
func (t *Team) sync(ctx context.Context, c fabric.Collective) error {
	seq, err := t.enter(c)
	if err != nil {
		return err
	}
	defer t.leave()
	if err := t.barrier.arrive(ctx, seq, c); err != nil {
		return t.failed(c, err)
	}
	return nil
}

// swap exchanges bytes. Its barrier comes first, since that is where different
// calls meet and find out.
func (t *Team) swap(ctx context.Context, c fabric.Collective, mine []byte) ([][]byte, error) {
	seq, err := t.enter(c)
	if err != nil {
		return nil, err
	}
	defer t.leave()
	if err := t.barrier.arrive(ctx, seq, c); err != nil {
		return nil, t.failed(c, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.whole, func() { cancel(context.Cause(t.whole)) })()
	all, err := t.job.client.Exchange(ctx, t.name+"/"+strconv.FormatUint(seq, 10), t.members, mine)
	if err != nil {
		return nil, t.failed(c, t.explain(err))
	}
	return all, nil
}

// err returns what became of the team, nil while it is whole: a death before
// its consequences, which may be known here first.
func (t *Team) err() error {
	if err := t.job.fabric.Gone(t.members); err != nil {
		return err
	}
	if e := t.broken.Load(); e != nil {
		return e
	}
	if t.job.aborted.Err() != nil {
		return context.Cause(t.job.aborted)
	}
	return nil
}
