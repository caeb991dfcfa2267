package rpipe_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A tardy provider's next registration, once it was armed, begins and does not end
// until it is let go on.
type tardy struct {
	driver.Provider
	armed   atomic.Bool
	begun   chan struct{}
	carryOn chan struct{}
}

func newTardy() *tardy { return &tardy{begun: make(chan struct{}), carryOn: make(chan struct{})} }

func (p *tardy) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	c, err := p.Provider.Open(ctx, device, opts)
	return &tardyContext{c, p}, err
}

type tardyContext struct {
	driver.Context
	p *tardy
}

func (c *tardyContext) RegMR(ctx context.Context, mem driver.Memory, a driver.Access) (driver.MR, error) {
	if c.p.armed.CompareAndSwap(true, false) {
		close(c.p.begun)
		<-c.p.carryOn
	}
	return c.Context.RegMR(ctx, mem, a)
}

// eachTardy runs f at a rank one of whose goroutines is in the middle of opening
// readers: one of a large heap, or so many of small ones that they need another slab.
// There is a pipe that was opened before.
func eachTardy(t *testing.T, f func(ctx context.Context, r *testjob.Rank, before *pipetest.Loopback)) {
	for _, test := range []struct{ readers, heap int }{{1, 1 << 20}, {30, 16 << 10}} {
		t.Run(fmt.Sprintf("%d of %d bytes", test.readers, test.heap), func(t *testing.T) {
			p := newTardy()
			testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				before := &pipetest.Loopback{Ctx: ctx, R: r}
				before.Open(rpipe.WithName("before"), rpipe.WithHeap(64))
				opened := make(chan error, 1)
				p.armed.Store(true)
				go func() { opened <- openReaders(ctx, r, test.readers, rpipe.WithHeap(test.heap)) }()
				defer func() { r.NoError(<-opened) }()
				defer close(p.carryOn)
				select {
				case <-p.begun:
				case <-ctx.Done():
					r.FailNow("nothing is registered")
				}
				f(ctx, r, before)
			}, runtime.WithWrap(func(inner driver.Provider) driver.Provider { p.Provider = inner; return p }))
		})
	}
}

func openReaders(ctx context.Context, r *testjob.Rank, n int, opts ...rpipe.Option) error {
	for range n {
		if _, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...); err != nil {
			return err
		}
	}
	return nil
}

// within returns what f does, unless that takes longer than the job.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("waits for the registration of another pipe's memory")
	}
}

func TestOpenBehindSlowOpenEndsWithItsContext(t *testing.T) {
	eachTardy(t, func(ctx context.Context, r *testjob.Rank, _ *pipetest.Loopback) {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		r.ErrorIs(within(ctx, func() error {
			_, err := rpipe.OpenWriter[byte](short, r.World, 0)
			return err
		}), context.DeadlineExceeded)
	})
}

func TestPipeWorksBesideSlowOpen(t *testing.T) {
	eachTardy(t, func(ctx context.Context, r *testjob.Rank, before *pipetest.Loopback) {
		r.NoError(within(ctx, func() error {
			before.Free(before.Read(before.Write(before.Alloc(1))))
			before.Close()
			return nil
		}))
	})
}
