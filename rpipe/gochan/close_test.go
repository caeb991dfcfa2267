package gochan_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/gochan"
)

// gathered sends values that leave in few blocks, once there is no more room for
// them each.
func gathered(ctx context.Context, r *testjob.Rank, values int) {
	s, err := gochan.OpenSender[int](ctx, r.World, 1, gochan.WithWidth(2))
	r.NoError(err)
	for i := range values {
		if err := s.Send(ctx, 1+i); err != nil {
			r.ErrorIs(err, rpipe.ErrClosed)
			break
		}
	}
	if err := s.Close(ctx); err != nil {
		r.ErrorIs(err, rpipe.ErrClosed)
	}
}

func TestCloseDropsUnreceivedValues(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				gathered(ctx, r, 100)
				return
			}
			c, err := gochan.OpenReceiver[int](ctx, r.World, 0, gochan.WithWidth(2))
			r.NoError(err)
			for i := range 10 { // beyond those that left alone
				v, err := c.Recv(ctx)
				r.NoError(err)
				r.Equal(1+i, v)
			}
			r.NoError(c.Close(ctx))
			_, err = c.Recv(ctx)
			r.ErrorIs(err, rpipe.ErrClosed)
			_, err = c.TryRecv()
			r.ErrorIs(err, rpipe.ErrClosed)
		})
	})
}

// TestReceiverClosesDuringRecv compares received values with sent ones,
// while Close gives their memory away.
func TestReceiverClosesDuringRecv(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for round := range 20 {
				if r.Me == 0 {
					gathered(ctx, r, 1000)
					continue
				}
				c, err := gochan.OpenReceiver[int](ctx, r.World, 0, gochan.WithWidth(2))
				r.NoError(err)
				var all sync.WaitGroup
				started := make(chan struct{}, 2)
				for range 2 {
					all.Go(func() {
						last := 0
						for {
							v, err := c.Recv(ctx)
							if err != nil {
								r.True(errors.Is(err, rpipe.ErrClosed) || errors.Is(err, io.EOF), err)
								return
							}
							r.Greater(v, last)
							r.LessOrEqual(v, 1000)
							if last = v; v > 20+round {
								select {
								case started <- struct{}{}:
								default:
								}
							}
						}
					})
				}
				<-started
				r.NoError(c.Close(ctx))
				all.Wait()
			}
		})
	})
}
