package collectives

import (
	"context"
	"errors"
	"reflect"

	"github.com/gopgas/gopgas/internal/team"
)

// A binding is a context that ends with the caller's and with the team. Calls that
// come with the same context as the one before use the same again.
type binding struct {
	outer  context.Context
	inner  context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
}

// errTeamEnded ends what waits below. Why the team ended is the verdict's to say.
var errTeamEnded = errors.New("the team has ended")

func (b *binding) to(ctx context.Context, t *team.Team) context.Context {
	if b.outer != nil && reflect.TypeOf(ctx).Comparable() && b.outer == ctx {
		return b.inner
	}
	if b.cancel != nil {
		b.stop()
		b.cancel(nil)
	}
	b.outer = ctx
	b.inner, b.cancel = context.WithCancelCause(ctx)
	cancel := b.cancel
	b.stop = context.AfterFunc(t.Whole, func() { cancel(errTeamEnded) })
	return b.inner
}
