package rpipe_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// during runs f while a job of two ranks lasts, with what each sees.
func during(t *testing.T, c testjob.Config, f func(ctx context.Context, a, b *testjob.Rank)) {
	ranks, done := make(chan *testjob.Rank, 2), make(chan struct{})
	var wait = make(chan error, 1)
	go func() {
		wait <- c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			ranks <- r
			select {
			case <-done:
			case <-ctx.Done():
			}
		})
	}()
	a, b := <-ranks, <-ranks
	if a.Me > b.Me {
		a, b = b, a
	}
	f(a.Job.Context(), a, b)
	close(done)
	require.NoError(t, <-wait)
}

// connected opens both ends of a connection.
func connected(ctx context.Context, t testing.TB, a, b *testjob.Rank, opts ...rpipe.Option) (*rpipe.Conn, *rpipe.Conn) {
	c1, err := rpipe.OpenConn(ctx, a.World, b.Me, opts...)
	require.NoError(t, err)
	c2, err := rpipe.OpenConn(ctx, b.World, a.Me, opts...)
	require.NoError(t, err)
	return c1, c2
}

func TestConnsAreAsPackageNetWantsThem(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for name, opts := range map[string][]rpipe.Option{
			"default": nil,
			"tiny":    {rpipe.WithHeap(256), rpipe.WithWidth(2)},
			"pull":    {rpipe.WithPull(), rpipe.WithSync(rpipe.Immediate)},
		} {
			t.Run(name, func(t *testing.T) {
				during(t, c, func(ctx context.Context, a, b *testjob.Rank) {
					nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
						c1, c2 := connected(ctx, t, a, b, opts...)
						return c1, c2, func() { c1.Close(); c2.Close() }, nil
					})
				})
			})
		}
	})
}

var _ = runtime.ErrClosed
