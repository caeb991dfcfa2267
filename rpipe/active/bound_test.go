package active_test

import (
	"context"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/active"
)

// TestSendStartsClockOfItsBound has messages leave by Flush: WithBound(0) starts no clock,
// and a bound of an hour starts one.
func TestSendStartsClockOfItsBound(t *testing.T) {
	for _, bound := range []time.Duration{0, time.Hour} {
		testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
			sendAndFlush(t, c, bound)
		})
	}
}

func sendAndFlush(t *testing.T, c testjob.Config, bound time.Duration) {
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		arrived := make(chan struct{}, 1)
		e, err := active.Open(ctx, r.World, active.Handlers{"note": func(context.Context, int, []byte) ([]byte, error) {
			arrived <- struct{}{}
			return nil, nil
		}}, active.WithBound(bound))
		r.NoError(err)
		if r.Me == 0 {
			r.NoError(e.Send(ctx, 1, "note", nil))
			r.Equal(bound > 0, e.Ticks())
			r.NoError(e.Flush(ctx))
		} else {
			select {
			case <-arrived:
			case <-ctx.Done():
				r.NoError(context.Cause(ctx))
			}
		}
		r.NoError(e.Close(ctx))
	})
}
