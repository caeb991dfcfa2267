package active

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// Close ends calls by this rank and its handlers. It runs this rank's handlers until all
// ranks have closed and their messages are handled. When ctx ends first, Close returns
// an error, and messages may be lost. The second call does nothing. A handler cannot
// call Close, which would wait for that handler. Kind: collective.
func (e *Endpoint) Close(ctx context.Context) (err error) {
	ctx = wait.Context(ctx)
	if ctx.Value(handlerOf{e}) != nil {
		return errCloseWithin
	}
	e.closed.Do(func() {
		e.closing.Store(true)
		// Requests end first: behind the last one of all ranks, no handler runs and no reply is sent.
		err = errors.Join(
			e.requests.Finish(ctx), await(ctx, e.target.done),
			e.replies.Finish(ctx), await(ctx, e.replied))
		e.end()
		err = errors.Join(err, e.closeRequestIn(ctx), e.replyIn.Close(ctx), e.requests.Close(ctx), e.replies.Close(ctx))
	})
	return err
}

// handlerOf is the key of a value in the contexts of handlers of e.
type handlerOf struct{ e *Endpoint }

var errCloseWithin = errors.New("a handler cannot close its endpoint, as Close would wait for the handler: call Close in another goroutine")

// await waits for done.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (while other ranks have not closed)", context.Cause(ctx))
	}
}

// closeRequestIn closes the pipes of requests to this rank. Running handlers still read
// their requests there: then a goroutine closes the pipes after the last handler.
func (e *Endpoint) closeRequestIn(ctx context.Context) error {
	select {
	case <-e.target.done:
		return e.target.in.Close(ctx)
	default:
	}
	go func() {
		<-e.target.done
		_ = e.target.in.Close(pipe.NoWait()) // no caller is left to take the error
	}()
	return nil
}
