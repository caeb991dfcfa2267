package active

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe/internal/batch"
)

// Inject writes a block as it is into the pipes of requests and of replies to a rank.
func (e *Endpoint) Inject(ctx context.Context, to int, block []byte) error {
	var errs []error
	for _, s := range []*batch.Batches[byte]{&e.requests, &e.replies} {
		b := &s.To[to]
		err := b.Enter(ctx)
		if err == nil {
			err = errors.Join(b.Send(ctx, batch.ByHand), b.Writer.Send(ctx, block))
			b.Leave()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Ticks reports whether the clock will send messages that wait.
func (e *Endpoint) Ticks() bool { return e.requests.Clock.Armed() }
