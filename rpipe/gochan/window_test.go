package gochan_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/gochan"
)

// TestChannelTakesPlaceOfWindowPool opens a channel over a pool with one place at each
// rank. A second channel finds no place there.
func TestChannelTakesPlaceOfWindowPool(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			over, err := rpipe.OverWindow(ctx, r.World, 1)
			r.NoError(err)
			full := func() {
				_, err := gochan.OpenSender[int](ctx, r.World, 1-r.Me, gochan.WithWindow(over), gochan.WithName("second"))
				r.ErrorContains(err, "OverWindow")
			}
			channel(ctx, r, func(s *gochan.Sender[int]) {
				full()
				for i := range 100 {
					r.NoError(s.Send(ctx, i))
				}
			}, func(c *gochan.Receiver[int]) {
				full()
				want := 0
				for v, err := range c.All(ctx) {
					r.NoError(err)
					r.Equal(want, v)
					want++
				}
				r.Equal(100, want)
			}, gochan.WithWindow(over))
			r.NoError(over.Close(ctx))
		})
	})
}
