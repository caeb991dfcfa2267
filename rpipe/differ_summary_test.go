package rpipe_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// looks is a context that ends at its left-th look.
type looks struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func endsAtLook(ctx context.Context, n int) *looks {
	l := &looks{}
	l.Context, l.end = context.WithCancel(ctx)
	l.left.Store(int64(n))
	return l
}

func (l *looks) look() {
	if l.left.Add(-1) == 0 {
		l.end()
	}
}

func (l *looks) Done() <-chan struct{} { l.look(); return l.Context.Done() }
func (l *looks) Err() error            { l.look(); return l.Context.Err() }

// A writer that finds itself to differ tells the FanIn, although its call is canceled
// meanwhile, at whichever look.
func TestCanceledWriterReportsErrMismatchToFanIn(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for n := range 30 {
				name := rpipe.WithName(fmt.Sprint("look ", n+1))
				if r.Me == 0 {
					in, err := fan.OpenIn[byte](ctx, r.World, []int{1}, name, rpipe.WithWidth(2))
					r.NoError(err)
					_, _, err = in.TryRead() // there is no writer yet
					r.ErrorIs(err, rpipe.ErrWouldBlock)
					r.NoError(r.World.Barrier(ctx))
					_, _, err = in.Read(ctx)
					r.ErrorIs(err, runtime.ErrMismatch)
					r.NoError(in.Close(ctx))
					continue
				}
				r.NoError(r.World.Barrier(ctx))
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, name, rpipe.WithWidth(3))
				r.NoError(err)
				brief := endsAtLook(ctx, n+1)
				if err = w.Send(brief, nil); !errors.Is(err, runtime.ErrMismatch) {
					r.ErrorIs(err, context.Canceled)
				}
				brief.end()
				_ = w.Close(ctx)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}
