//go:build linux

package fabric_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
)

// fillable returns rank 0's view of a region at rank 1. The queues take nothing while the
// recorder says so.
func fillable(t *testing.T) (*rig, *fabric.Remote, *recorder) {
	wire := loop.New()
	var origin *recorder
	r := newRigOver(t, 2, 0, func() driver.Provider {
		rec := &recorder{Provider: wire}
		if origin == nil {
			origin = rec
		}
		return rec
	})
	r.region(t, 1, 4096, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	require.NoError(t, remote.Peer.Flush(watched(t)))
	origin.take()
	return r, remote, origin
}

// writes returns a composer that writes n bytes.
func writes(remote *fabric.Remote, n int) *fabric.Composer {
	src := make([]byte, n)
	return &fabric.Composer{Compose: func(ctx context.Context) error {
		return remote.Put(ctx, told(0, src, fabric.Flag{Offset: 1024}))
	}}
}

func TestComposersPostInOrderAheadOfLaterPuts(t *testing.T) {
	r, remote, device := fillable(t)
	fabric.WithoutRetry(r.ranks[0])
	p := remote.Peer
	device.full.Store(true)
	for n := 1; n <= 3; n++ {
		require.ErrorIs(t, p.Post(p.NoWait(), writes(remote, n)), fabric.ErrNoRoom)
	}
	device.full.Store(false)
	require.ErrorIs(t, remote.PostFlag(p.NoWait(), fabric.Flag{}), fabric.ErrNoRoom, "there is room, for the composers")
	require.Empty(t, device.take())
	require.NoError(t, remote.Write(watched(t), 0, make([]byte, 4)))
	require.Equal(t, "W1i W8i | W2i W8i | W3i W8i | W4i", device.take())
	require.NoError(t, remote.PostFlag(p.NoWait(), fabric.Flag{}))
	require.Equal(t, "W8i", device.take())
}

func TestComposerRegisteredTwicePostsOnce(t *testing.T) {
	_, remote, device := fillable(t)
	p, c := remote.Peer, writes(remote, 1)
	device.full.Store(true)
	for range 3 {
		p.Later(c)
	}
	device.full.Store(false)
	require.NoError(t, p.Await(watched(t), c))
	require.NoError(t, remote.Write(watched(t), 0, make([]byte, 4)))
	require.Equal(t, "W1i W8i | W4i", device.take())
}

func TestComposerRegisteredInComposeComposesAgain(t *testing.T) {
	_, remote, device := fillable(t)
	p := remote.Peer
	calls := 0
	c := &fabric.Composer{}
	c.Compose = func(ctx context.Context) error {
		if calls++; calls == 1 {
			p.Later(c)
		}
		return remote.PostFlag(ctx, fabric.Flag{})
	}
	p.Later(c)
	require.NoError(t, p.Await(watched(t), c))
	require.Equal(t, 2, calls)
	require.Equal(t, "W8i | W8i", device.take())
}

func TestPostComposesAtOnceInAQueueWithRoom(t *testing.T) {
	_, remote, device := fillable(t)
	require.NoError(t, remote.Peer.Post(remote.Peer.NoWait(), writes(remote, 1)))
	require.Equal(t, "W1i W8i", device.take())
}

func TestRetryTimerCallsComposersAndStops(t *testing.T) {
	r, remote, device := fillable(t)
	device.full.Store(true)
	remote.Peer.Later(writes(remote, 1))
	require.True(t, fabric.Retries(r.ranks[0]))
	device.full.Store(false)
	require.Eventually(t, func() bool { return !fabric.Retries(r.ranks[0]) }, testwatch.Patience(), time.Millisecond)
	require.Equal(t, "W1i W8i", device.take())
}

// Completions of loop are held, until polls bring them.
func TestCompletionCallsComposers(t *testing.T) {
	wire := loop.New()
	r := newRigOver(t, 2, 0, func() driver.Provider {
		return faulty.New(wire, faulty.Plan{MaxDepth: 8, DelayCompletions: 1, MaxPolls: 1 << 20, MaxDelay: 20 * time.Millisecond})
	})
	mem := r.region(t, 1, 4096, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	fabric.WithoutRetry(r.ranks[0])
	p := remote.Peer
	for err == nil {
		err = remote.PostFlag(p.NoWait(), fabric.Flag{Offset: 8, Value: 1})
	}
	require.ErrorIs(t, err, fabric.ErrNoRoom)
	composed := false
	p.Later(&fabric.Composer{Compose: func(ctx context.Context) error {
		err := remote.PostFlag(ctx, fabric.Flag{Offset: 16, Value: 7})
		composed = err == nil
		return err
	}})
	for !composed {
		require.NoError(t, watched(t).Err())
		r.ranks[0].Progress()
		goruntime.Gosched()
	}
	require.NoError(t, p.Flush(watched(t)))
	require.EqualValues(t, 7, atomics.Word64(mem[16:]).Load())
}

func TestCanceledPostArrives(t *testing.T) {
	_, remote, device := fillable(t)
	p, c := remote.Peer, writes(remote, 1)
	device.full.Store(true)
	ctx, cancel := context.WithCancelCause(watched(t))
	cancel(errMade)
	require.ErrorIs(t, p.Post(ctx, c), errMade)
	device.full.Store(false)
	require.NoError(t, p.Flush(watched(t)))
	require.Contains(t, device.take(), "W1i W8i | ", "ahead of the read of the flush")
}

// TestFlushAwaitsResponsesToComposers has the flush itself call a composer, which has the target's CPU add.
func TestFlushAwaitsResponsesToComposers(t *testing.T) {
	r := newRig(t, 2, 0, byCPU)
	mem := r.region(t, 1, 64, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	fabric.WithoutRetry(r.ranks[0])
	p, room := remote.Peer, atomic.Bool{}
	p.Later(&fabric.Composer{Compose: func(ctx context.Context) error {
		if !room.Load() {
			return fabric.ErrNoRoom
		}
		return remote.PostFlag(ctx, fabric.Flag{Offset: 8, Add: true, Value: 7})
	}})
	room.Store(true)
	n, err := p.FlushAwaits(watched(t))
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.EqualValues(t, 7, atomics.Word64(mem[8:]).Load())
}

// TestOrderCoversComposersInLine has a composer post between Order and a transfer over stripes.
func TestOrderCoversComposersInLine(t *testing.T) {
	r, remote, device := fillable(t)
	fabric.WithoutRetry(r.ranks[0])
	p, c := remote.Peer, writes(remote, 1)
	device.full.Store(true)
	p.Later(c)
	p.Order()
	device.full.Store(false)
	require.NoError(t, p.Await(watched(t), c))
	require.Len(t, strings.Split(device.take(), " | "), 1)
	require.NoError(t, p.AwaitOrdered(watched(t)))
	require.NotEmpty(t, device.take(), "the read that acknowledges the composer's post")
}

// TestOrderCoversRequestsOfComposersInLine has a composer send the target's CPU a request between Order and a put. The queue
// of the target takes no response.
func TestOrderCoversRequestsOfComposersInLine(t *testing.T) {
	wire := loop.New()
	var target *recorder // rank 1 opens last
	r := newRigOver(t, 2, 0, func() driver.Provider {
		target = &recorder{Provider: faulty.New(wire, byCPU)}
		return target
	})
	r.region(t, 1, 64, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	fabric.WithoutRetry(r.ranks[0])
	p, add := remote.Peer, fabric.Flag{Offset: 8, Add: true, Value: 7}
	require.NoError(t, p.Flush(watched(t)))
	target.full.Store(true)
	room := false
	c := &fabric.Composer{Compose: func(ctx context.Context) error {
		if !room {
			return fabric.ErrNoRoom
		}
		return remote.PostFlag(ctx, add)
	}}
	p.Later(c)
	p.Order()
	room = true
	require.NoError(t, p.Await(watched(t), c))
	put := func(ctx context.Context) error { return remote.Write(ctx, 0, make([]byte, 4)) }
	require.ErrorIs(t, put(p.NoWait()), fabric.ErrNoRoom, "the target has not told that the composer's request is over")
	target.full.Store(false)
	require.NoError(t, remote.PostFlag(watched(t), add)) // its response brings the earlier one along
	require.NoError(t, put(watched(t)))
	require.NoError(t, p.Flush(watched(t)))
	target.full.Store(true)
	require.NoError(t, remote.PostFlag(watched(t), add))
	require.NoError(t, put(p.NoWait()), "a request behind the Order")
	target.full.Store(false)
	require.NoError(t, remote.PostFlag(watched(t), add))
	require.NoError(t, p.Flush(watched(t)))
}

func TestComposersReturnErrRankDeadAfterTheirPeersDeath(t *testing.T) {
	r, remote, device := fillable(t)
	device.full.Store(true)
	var all [3]*fabric.Composer
	for n := range all {
		all[n] = writes(remote, 1)
		remote.Peer.Later(all[n])
	}
	r.ranks[0].RankDied(1, "made up")
	for _, c := range all {
		require.ErrorIs(t, remote.Peer.Await(watched(t), c), fabric.ErrRankDead)
	}
	require.ErrorIs(t, remote.Write(watched(t), 0, make([]byte, 4)), fabric.ErrRankDead)
	require.Eventually(t, func() bool { return !fabric.Retries(r.ranks[0]) }, testwatch.Patience(), time.Millisecond)
	require.Empty(t, device.take())
}

func TestComposersReturnErrClosedAfterClose(t *testing.T) {
	r, remote, device := fillable(t)
	device.full.Store(true)
	before, behind := writes(remote, 1), writes(remote, 1)
	remote.Peer.Later(before)
	require.NoError(t, r.ranks[0].Close())
	require.ErrorIs(t, remote.Peer.Await(watched(t), before), fabric.ErrClosed)
	require.ErrorIs(t, remote.Peer.Post(watched(t), behind), fabric.ErrClosed)
}

func TestComposersAllocateNothing(t *testing.T) {
	_, remote, device := fillable(t)
	p := remote.Peer
	c := &fabric.Composer{Compose: func(context.Context) error { return nil }}
	once := func() {
		p.Later(c)
		_ = p.Await(p.NoWait(), c)
	}
	once()
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = p.Post(p.NoWait(), c) }))
	device.full.Store(true)
	late := writes(remote, 1)
	p.Later(late)
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Later(c) }))
	device.full.Store(false)
	require.NoError(t, p.Await(watched(t), c))
}

// A raised is a registrant. It tells the peer by a word how often the test raised it. The
// latest value of the word counts. Its composer takes its mutex.
type raised struct {
	mu sync.Mutex
	n  uint64
	c  fabric.Composer
}

func (r *raised) raise(remote *fabric.Remote, at int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if remote.PostFlag(remote.Peer.NoWait(), fabric.Flag{Offset: at, Value: r.n}) != nil {
		remote.Peer.Later(&r.c)
	}
}

// Queues are nearly always full here. Registrants whose composers take their mutexes make
// progress all the same, as do goroutines that wait for room.
func TestFullQueuesBlockNeitherComposersNorPosters(t *testing.T) {
	for name, plan := range map[string]faulty.Plan{
		"shallow":          {HideMapper: true, MaxDepth: 8},
		"shallow requests": {HideMapper: true, HideExtendedAtomics: true, HideCoherentAtomics: true, MaxDepth: 8},
		"refusing":         {HideMapper: true, QueueFull: 0.5, PartialPosts: 0.5},
		"late":             {HideMapper: true, MaxDepth: 8, DelayStarts: 0.5, DelayCompletions: 0.5, MaxDelay: 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			const registrants, times = 4, 300
			remote, mem := pair(t, 4096, 0, plan)
			ctx := watched(t)
			var all [registrants]raised
			var running sync.WaitGroup
			for i := range all {
				r := &all[i]
				r.c.Compose = func(ctx context.Context) error {
					r.mu.Lock()
					defer r.mu.Unlock()
					return remote.PostFlag(ctx, fabric.Flag{Offset: 8 * i, Value: r.n})
				}
				running.Go(func() {
					for range times {
						r.raise(remote, 8*i)
					}
				})
			}
			errs := make(chan error, 2)
			running.Go(func() {
				var err error
				for n := 0; n < times && err == nil; n++ {
					err = remote.Put(ctx, told(1024, make([]byte, 100), fabric.Flag{Offset: 512, Add: true, Value: 1}))
				}
				errs <- err
			})
			running.Go(func() {
				var err error
				for n := 0; n < times/10 && err == nil; n++ {
					err = remote.Peer.Flush(ctx)
				}
				errs <- err
			})
			running.Wait()
			require.NoError(t, <-errs)
			require.NoError(t, <-errs)
			require.NoError(t, remote.Peer.Flush(ctx))
			for i := range all {
				require.EqualValues(t, times, atomics.Word64(mem[8*i:]).Load(), fmt.Sprint(i))
			}
			require.EqualValues(t, times, atomics.Word64(mem[512:]).Load())
		})
	}
}

// TestPutsWaitBehindComposersWithoutStages has more puts wait for a composer than the device
// has stages. The composer needs a stage in the end.
func TestPutsWaitBehindComposersWithoutStages(t *testing.T) {
	const puts = 130
	remote, _ := pair(t, 4096, 0, faulty.Plan{HideMapper: true, NeedLocalKeys: true, MaxInline: 64})
	ctx := watched(t)
	var may atomic.Bool
	write := writes(remote, 100).Compose
	c := &fabric.Composer{Compose: func(ctx context.Context) error {
		if !may.Load() {
			return fabric.ErrNoRoom
		}
		return write(ctx)
	}}
	remote.Peer.Later(c)
	errs := make(chan error, puts)
	for range puts {
		go func() { errs <- remote.Put(ctx, told(0, make([]byte, 100), fabric.Flag{Offset: 2048})) }()
	}
	require.Eventually(t, func() bool { return remote.Peer.Stalls() == puts }, testwatch.Patience(), time.Millisecond)
	may.Store(true)
	for range puts {
		require.NoError(t, <-errs)
	}
	require.NoError(t, remote.Peer.Await(ctx, c))
}
