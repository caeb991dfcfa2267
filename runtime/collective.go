package runtime

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// collective makes one collective call: a barrier, which finds calls that differ, then the function
// then. That function gets ctx and the key of the call.
func (t *Team) collective(ctx context.Context, c team.Collective, then func(ctx context.Context, key team.Key) error) error {
	return t.collectiveBehind(ctx, c, nil, then)
}

// collectiveBehind is collective with a function that runs ahead of the barrier, when all earlier calls
// of this rank have ended.
func (t *Team) collectiveBehind(ctx context.Context, c team.Collective, first func(ctx context.Context) error, then func(ctx context.Context, key team.Key) error) error {
	if t == nil {
		return noTeam(c)
	}
	call := &t.stream.own[c]
	key, err := t.stream.Begin(ctx, call)
	if err != nil {
		return err
	}
	if first != nil {
		err = first(ctx)
	}
	if err == nil {
		err = t.barrier.arrive(ctx, key, c)
	}
	if err == nil && then != nil {
		err = then(ctx, key)
	}
	return t.stream.End(key, call, err)
}

// noTeam returns the error of a call of a nil team.
func noTeam(c team.Collective) error {
	return fmt.Errorf("%s: %w: it gave Split a negative color", c, ErrTeam)
}

// within runs f with a context that ends with the team.
func (t *Team) within(ctx context.Context, f func(context.Context) error) error {
	ctx = wait.Context(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.whole, func() { cancel(context.Cause(t.whole)) })()
	return f(ctx)
}

// sync makes a collective call that is only a barrier.
func (t *Team) sync(ctx context.Context, c team.Collective) error { return t.collective(ctx, c, nil) }

// swap gives each member's bytes to all members.
func (t *Team) swap(ctx context.Context, c team.Collective, mine []byte) (all [][]byte, err error) {
	err = t.collective(ctx, c, func(ctx context.Context, key team.Key) error {
		return t.within(ctx, func(ctx context.Context) error {
			all, err = t.exchange(ctx, key, mine)
			return err
		})
	})
	return all, err
}

// exchange makes the part of a collective call that goes through the launcher.
func (t *Team) exchange(ctx context.Context, key team.Key, mine []byte) ([][]byte, error) {
	all, err := t.job.client.Exchange(ctx, t.name+"/"+strconv.FormatUint(key.Seq, 10), t.members, mine)
	if err != nil {
		return nil, explain(err)
	}
	return all, nil
}

// err returns the error of the team, nil while it is whole. It returns a death rather
// than its consequences, of which this rank may learn first.
func (t *Team) err() error {
	e := t.broken.Load()
	if e != nil && e.freed() {
		return e
	}
	if err := t.job.fabric.Gone(t.members); err != nil {
		return err
	}
	if e != nil {
		return e
	}
	if t.job.aborted.Err() != nil {
		return context.Cause(t.job.aborted)
	}
	return nil
}
