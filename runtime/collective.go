package runtime

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gopgas/gopgas/internal/fabric"
)

// enter begins a collective call and returns its number. leave ends it. A rank
// that cannot take part says so to the others, who may not know why.
func (t *Team) enter(c fabric.Collective) (uint64, error) {
	if t == nil {
		return 0, fmt.Errorf("%s: %w: it gave Split a negative color", c, ErrTeam)
	}
	if !t.calling.TryLock() {
		return 0, fmt.Errorf("team %s: %w: %s began while another collective call of this rank was under way; "+
			"make them one at a time, or split a team for each goroutine", t.name, ErrMismatch, c)
	}
	if err := t.err(); err != nil {
		t.calling.Unlock()
		return 0, t.failed(c, err)
	}
	t.seq++
	return t.seq, nil
}

func (t *Team) leave() { t.calling.Unlock() }

// collective makes one collective call: a barrier, where calls that differ meet
// and find out, and then what the call does beyond it. then gets a context that
// ends with the team, and the number of the call.
func (t *Team) collective(ctx context.Context, c fabric.Collective, then func(ctx context.Context, seq uint64) error) error {
	seq, err := t.enter(c)
	if err != nil {
		return err
	}
	defer t.leave()
	if err := t.barrier.arrive(ctx, seq, c); err != nil {
		return t.failed(c, err)
	}
	if then == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.whole, func() { cancel(context.Cause(t.whole)) })()
	if err := then(ctx, seq); err != nil {
		return t.failed(c, err)
	}
	return nil
}

// sync is a barrier and nothing more.
func (t *Team) sync(ctx context.Context, c fabric.Collective) error { return t.collective(ctx, c, nil) }

// swap hands everyone's bytes to everyone.
func (t *Team) swap(ctx context.Context, c fabric.Collective, mine []byte) (all [][]byte, err error) {
	err = t.collective(ctx, c, func(ctx context.Context, seq uint64) error {
		all, err = t.exchange(ctx, seq, mine)
		return err
	})
	return all, err
}

// exchange is the part of a collective call that goes through the launcher.
func (t *Team) exchange(ctx context.Context, seq uint64, mine []byte) ([][]byte, error) {
	all, err := t.job.client.Exchange(ctx, t.name+"/"+strconv.FormatUint(seq, 10), t.members, mine)
	if err != nil {
		return nil, explain(err)
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
