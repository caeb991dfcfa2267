package collectives

import (
	"context"
	"errors"
	"reflect"

	"github.com/gopgas/gopgas/internal/team"
)

// A binding makes a context that ends with the caller's and with the team. A call with the
// same context as the call before uses the same binding again.
type binding struct {
	call   team.Key // the latest call that used the binding
	outer  context.Context
	inner  context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
}

// errTeamEnded ends the waits of a call. verdict returns why the team ended.
var errTeamEnded = errors.New("the team has ended")

// to returns the context of a call. A call has one ctx and may ask several times: to replaces
// no context that the call uses already, even if ctx cannot be compared.
func (b *binding) to(ctx context.Context, t *team.Team, call team.Key) context.Context {
	if b.outer != nil && (b.call == call || reflect.ValueOf(ctx).Comparable() && b.outer == ctx) {
		b.call = call
		return b.inner
	}
	b.end()
	b.call, b.outer = call, ctx
	b.inner, b.cancel = context.WithCancelCause(ctx)
	cancel := b.cancel
	b.stop = context.AfterFunc(t.Whole, func() { cancel(errTeamEnded) })
	return b.inner
}

// end ends the context of the latest call. The end of the team starts no goroutine for it any more.
func (b *binding) end() {
	if b.cancel != nil {
		b.stop()
		b.cancel(nil)
	}
	*b = binding{}
}
