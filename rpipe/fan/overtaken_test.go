package fan_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// quietLayer ends without a ring.
type quietLayer struct {
	pipe.Layer
	ended *atomic.Bool
}

var errQuiet = errors.New("ended without a ring")

func (l quietLayer) Err() error {
	if l.ended.Load() {
		return errQuiet
	}
	return l.Layer.Err()
}

// endsUnrung has wait sleep for news of p, whose layer then ends without a ring, as if the ring had
// overtaken the store. wait has to look again.
func endsUnrung(ctx context.Context, r *testjob.Rank, p *pipe.End, wait func() error) {
	var over atomic.Bool
	p.Layer = quietLayer{p.Layer, &over}
	bell, ended := team.Of(r.World).Bell(), make(chan error, 1)
	before := bell.Parks()
	go func() { ended <- wait() }()
	for bell.Parks() == before && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	over.Store(true)
	r.ErrorIs(<-ended, errQuiet)
	over.Store(false) // Close needs the layer
}

func TestFanInLooksAgainBehindAMissedRing(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f, err := fan.OpenIn[int](ctx, r.World, []int{0})
		r.NoError(err)
		w, err := rpipe.OpenWriter[int](ctx, r.World, 0)
		r.NoError(err)
		endsUnrung(ctx, r, f.Ends()[0].End, func() error { _, _, err := f.Read(ctx); return err })
		r.NoError(f.Close(ctx))
		r.NoError(w.Close(ctx))
	})
}

func TestFanOutLooksAgainBehindAMissedRing(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f, err := fan.OpenOut[int](ctx, r.World, []int{0}, rpipe.WithWidth(1))
		r.NoError(err)
		rd, err := rpipe.OpenReader[int](ctx, r.World, 0, rpipe.WithWidth(1))
		r.NoError(err)
		r.NoError(f.Send(ctx, []int{1}))
		endsUnrung(ctx, r, f.Ends()[0].End, func() error { return f.Send(ctx, []int{2}) })
		r.NoError(rd.Close(ctx))
		_ = f.Close(ctx) // the reader has left a block
	})
}
