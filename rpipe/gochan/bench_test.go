package gochan_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/gochan"
	"github.com/gopgas/gopgas/runtime"
)

// BenchmarkStream sends values of 8 bytes from rank 0 to rank 1: as blocks of a pipe,
// and through a channel over it.
func BenchmarkStream(b *testing.B) {
	for _, c := range []testjob.Config{{Provider: "shm", Ranks: 2}, {Provider: "tcp", Ranks: 2}} {
		b.Run("pipe/"+c.Provider, func(b *testing.B) {
			stream(b, c, func(ctx context.Context, world *runtime.Team) error {
				w, err := rpipe.OpenWriter[int64](ctx, world, 1)
				if err != nil {
					return err
				}
				for i := range b.N {
					if err := w.Send(ctx, []int64{int64(i)}); err != nil {
						return err
					}
				}
				return w.Close(ctx)
			}, func(ctx context.Context, world *runtime.Team) error {
				r, err := rpipe.OpenReader[int64](ctx, world, 0)
				if err != nil {
					return err
				}
				var v [1]int64
				for range b.N {
					if _, err := r.Recv(ctx, v[:]); err != nil {
						return err
					}
				}
				return r.Close(ctx)
			})
		})
		b.Run("channel/"+c.Provider, func(b *testing.B) {
			stream(b, c, func(ctx context.Context, world *runtime.Team) error {
				s, err := gochan.OpenSender[int64](ctx, world, 1)
				if err != nil {
					return err
				}
				for i := range b.N {
					if err := s.Send(ctx, int64(i)); err != nil {
						return err
					}
				}
				return s.Close(ctx)
			}, func(ctx context.Context, world *runtime.Team) error {
				c, err := gochan.OpenReceiver[int64](ctx, world, 0)
				if err != nil {
					return err
				}
				for range b.N {
					if _, err := c.Recv(ctx); err != nil {
						return err
					}
				}
				return c.Close(ctx)
			})
		})
	}
}

// stream runs both ends of a stream at once.
func stream(b *testing.B, c testjob.Config, send, receive func(ctx context.Context, world *runtime.Team) error) {
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 0 {
			return send(ctx, job.World())
		}
		return receive(ctx, job.World())
	}, c.Options()...)
	if err != nil {
		b.Error(err)
	}
}
