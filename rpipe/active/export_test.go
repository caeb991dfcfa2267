package active

import (
	"context"
	"errors"
)

// Inject writes a block as it is into the pipes of requests and of replies to a rank.
func (a *Endpoint) Inject(ctx context.Context, to int, block []byte) error {
	var errs []error
	for _, m := range []*mailer{a.requests, a.replies} {
		d := &m.drops[to]
		err := d.enter(ctx)
		if err == nil {
			err = errors.Join(d.Send(ctx, true), d.Writer.Send(ctx, block))
			d.leave()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
