// Package pipetest runs tests of pipes and of the products made of them.
package pipetest

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/trace"
)

// Alone runs a test on a pipe of one rank to itself, whose work requests are
// counted: nothing else posts any.
func Alone(t *testing.T, c testjob.Config, f func(ctx context.Context, r *testjob.Rank, l *Loopback)) {
	var traced *trace.Provider
	spy := &Spy{}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f(ctx, r, &Loopback{Ctx: ctx, R: r, Trace: traced, Spy: spy})
	},
		runtime.WithWrap(func(p driver.Provider) driver.Provider {
			if spy.Provider = p; c.NIC {
				spy.Provider = faulty.New(p, DeviceLike)
			}
			traced = trace.New(spy)
			return traced
		}))
}

// These are configurations of one rank.
var (
	// Queued posts all operations to queue pairs.
	Queued = testjob.Config{Provider: "loop", Queued: true, Ranks: 1}
	// Mapped loads and stores.
	Mapped = testjob.Config{Provider: "loop", Ranks: 1}
	// NIC has the limits of RDMA devices.
	NIC = testjob.Config{Provider: "loop", NIC: true, Queued: true, Ranks: 1}
)

// DeviceLike is a device that maps nothing and knows registered memory only.
var DeviceLike = faulty.Plan{HideMapper: true, HideCanceler: true, HideExtendedAtomics: true, HideAppliedWrites: true,
	HideCoherentAtomics: true, NeedLocalKeys: true, MaxInline: 256}

// A Loopback is a rank's pipe to itself.
type Loopback struct {
	Ctx   context.Context
	R     *testjob.Rank
	Trace *trace.Provider
	Spy   *Spy
	W     *rpipe.Writer[byte]
	Rd    *rpipe.Reader[byte]
}

// Open opens the pipe and connects both ends. Announcements that are not pressing wait
// until the test calls Sync.
func (l *Loopback) Open(opts ...rpipe.Option) {
	opts = append(opts, WithoutAnnouncer())
	var err error
	l.W, err = rpipe.OpenWriter[byte](l.Ctx, l.R.World, 0, opts...)
	l.R.NoError(err)
	l.Rd, err = rpipe.OpenReader[byte](l.Ctx, l.R.World, 0, opts...)
	l.R.NoError(err)
	l.Free(l.Read(l.Write(l.Alloc(1))))
	l.R.NoError(l.Rd.Sync(l.Ctx))
	l.R.NoError(l.W.Flush(l.Ctx))
}

// Close closes both ends, each of which waits for the other.
func (l *Loopback) Close() {
	done := make(chan error, 1)
	go func() { done <- l.W.Close(l.Ctx) }()
	for _, err := range l.Rd.All(l.Ctx) {
		l.R.NoError(err)
	}
	l.R.NoError(<-done)
	l.R.NoError(l.Rd.Close(l.Ctx))
}

// Alloc allocates a block.
func (l *Loopback) Alloc(n int) rpipe.Block[byte] {
	b, err := l.W.Alloc(l.Ctx, n)
	l.R.NoError(err)
	return b
}

// Write writes a block, and returns it.
func (l *Loopback) Write(b rpipe.Block[byte]) rpipe.Block[byte] {
	l.R.NoError(l.W.Write(l.Ctx, b))
	return b
}

// Read reads the block that comes next, which may have been written as another.
func (l *Loopback) Read(rpipe.Block[byte]) rpipe.Block[byte] {
	b, err := l.Rd.Read(l.Ctx)
	l.R.NoError(err)
	return b
}

// Free frees a block that was read.
func (l *Loopback) Free(b rpipe.Block[byte]) { l.R.NoError(l.Rd.Free(b)) }

// Cost counts the work requests that f posts.
func (l *Loopback) Cost(f func()) trace.Counts {
	l.Trace.Reset()
	f()
	return l.Trace.Snapshot().Total
}

// OverAll runs a body as a job over the fabric, and as one over a window with room for
// the products' pipes without options.
func OverAll(t *testing.T, c testjob.Config, body func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool)) {
	t.Run("fabric", func(t *testing.T) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) { body(ctx, r, nil) })
	})
	t.Run("window", func(t *testing.T) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			over, err := rpipe.OverWindow(ctx, r.World, 4*r.N+8, rpipe.WithHeap(64<<10))
			r.NoError(err)
			body(ctx, r, over)
			r.NoError(over.Close(ctx))
		})
	})
}

// Used returns how much of this rank's heap is allocated.
func Used(t *runtime.Team) int64 { return team.Of(t).Arena().Used() }

// Disturbed puts verbs/faulty between the fabric and the provider.
func Disturbed(seed uint64) runtime.Option {
	plan := faulty.Plan{Seed: seed, DelayStarts: 0.3, Reorder: 0.5, PartialPosts: 0.3, QueueFull: 0.2}
	return runtime.WithWrap(func(p driver.Provider) driver.Provider { return faulty.New(p, plan) })
}

// Leave waits for all ranks, of which one may be dead by then.
func Leave(ctx context.Context, r *testjob.Rank) {
	if err := r.World.Barrier(ctx); err != nil {
		r.ErrorIs(err, runtime.ErrRankDead)
	}
}

// Small makes pipes that take little memory.
var Small = []rpipe.Option{rpipe.WithHeap(512), rpipe.WithWidth(4), rpipe.WithBlocks(4)}

// Fewer is n, or less of it where the race detector slows everything down.
func Fewer(n int) int {
	if testwatch.Race {
		return n / 5
	}
	return n
}
