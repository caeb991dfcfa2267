package wait

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestWaitReturnsAtOnceWhenReadyWithoutLookingAtTheContext(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		b := bell()
		require.NoError(t, b.Wait(ctx, func() bool { return true }))
		require.Zero(t, b.Parks())
	})
}

func TestRingWakesAParkedWaiter(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		var flag atomic.Bool
		result := waited(testwatch.Context(t), b, flag.Load)
		untilParked(t, b, 0)
		flag.Store(true)
		b.Ring()
		require.NoError(t, <-result)
	})
}

func TestRingWithoutItsConditionLeavesTheWaiterWaiting(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		var flag atomic.Bool
		result := waited(testwatch.Context(t), b, flag.Load)
		for range uint64(5) {
			before := b.Parks()
			b.Ring()
			untilParked(t, b, before)
		}
		require.Empty(t, result)
		flag.Store(true)
		b.Ring()
		require.NoError(t, <-result)
	})
}

func TestCancellationWakesAParkedWaiterWithItsCause(t *testing.T) {
	cause := errors.New("the job was aborted")
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		ctx, cancel := context.WithCancelCause(testwatch.Context(t))
		result := waited(ctx, b, never)
		untilParked(t, b, 0)
		cancel(cause)
		require.ErrorIs(t, <-result, cause)
		require.Zero(t, b.words.waiters.Load())
	})
}

func TestCancellationEndsAWaitBeforeItParks(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, b.Wait(ctx, never), context.Canceled)
		require.Zero(t, b.Parks())
	})
}

func TestCancellationOfOneWaiterLeavesOtherWaitersWaiting(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		var flag atomic.Bool
		ctx, cancel := context.WithCancel(testwatch.Context(t))
		first := waited(ctx, b, never)
		untilParked(t, b, 0)
		second := waited(testwatch.Context(t), b, flag.Load)
		untilParked(t, b, 1)
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		require.Empty(t, second)
		flag.Store(true)
		b.Ring()
		require.NoError(t, <-second)
	})
}

func TestPanicOfAConditionLeavesNoWaiterBehind(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		looks := 0
		require.Panics(t, func() {
			_ = b.park(testwatch.Context(t), Manner{}, func() bool {
				looks++
				panic("condition")
			})
		})
		require.Equal(t, 1, looks)
		require.Zero(t, b.words.waiters.Load())
	})
}

// TestPollsThatAreSystemCallsAreFewOnASharedCore counts the looks ahead of the first yield,
// at which Wait looks at the context.
func TestPollsThatAreSystemCallsAreFewOnASharedCore(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		b := bell()
		looks := func(wait func(context.Context, func() bool) error) (n int) {
			require.ErrorIs(t, wait(ended, func() bool { n++; return false }), context.Canceled)
			return n
		}
		require.Equal(t, polls, looks(b.Wait))
		require.Equal(t, calls, looks(b.WaitCalling))
		b.OwnCore()
		require.Equal(t, polls, looks(b.Wait))
		require.Equal(t, callsAlone, looks(b.WaitCalling))
	})
}

// TestWaitersSleepEarlyIfTheirYieldsLastLong makes each look as long as a yield
// on a core that another program uses.
func TestWaitersSleepEarlyIfTheirYieldsLastLong(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b, looks := bell(), 0
		require.NoError(t, b.Wait(testwatch.Context(t), func() bool {
			if looks++; looks > polls {
				time.Sleep(enough)
			}
			return b.Waiting() // it is about to sleep
		}))
		require.LessOrEqual(t, looks, polls+4)
	})
}

func TestRingWithoutWaitersLeavesTheSequenceAlone(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		b.Ring()
		require.Zero(t, b.words.seq.Load())
	})
}

func TestTwoViewsOfOneSharedBellRingEachOther(t *testing.T) {
	mem := sharedMemory(t)
	owner, peer := NewShared(mem, -1, 0), NewShared(mem, -1, 0)
	var flag atomic.Bool
	for _, pair := range [][2]*Bell{{owner, peer}, {peer, owner}} {
		flag.Store(false)
		before := pair[0].Parks()
		result := waited(testwatch.Context(t), pair[0], flag.Load)
		untilParked(t, pair[0], before)
		flag.Store(true)
		pair[1].Ring()
		require.NoError(t, <-result)
	}
}

// A goroutine in a system call costs a thread; a hundred of them would show.
func TestManyParkedWaitersShareOneThread(t *testing.T) {
	const waiters = 200
	b := NewShared(sharedMemory(t), -1, 0)
	before := threads(t)
	var flag atomic.Bool
	results := make([]<-chan error, waiters)
	for i := range results {
		results[i] = waited(testwatch.Context(t), b, flag.Load)
	}
	untilParked(t, b, waiters-1)
	require.Less(t, threads(t)-before, waiters/4)
	flag.Store(true)
	b.Ring()
	for _, result := range results {
		require.NoError(t, <-result)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "Threads:")
	require.True(t, found)
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return n
}

func TestRingAndReadyWaitAllocateNothing(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b, ctx := bell(), context.Background()
		ready := func() bool { return true }
		require.Zero(t, testing.AllocsPerRun(1000, b.Ring))
		require.Zero(t, testing.AllocsPerRun(1000, func() { _ = b.Wait(ctx, ready) }))
	})
}

func TestRingAllocatesNothingWhileAGoroutineWaits(t *testing.T) {
	b := NewShared(sharedMemory(t), -1, 0)
	b.words.waiters.Add(1) // as a waiter of another process would
	require.Zero(t, testing.AllocsPerRun(1000, b.Ring))
}

func TestOnlyASharedBellWithADescriptorHasALocation(t *testing.T) {
	mem := sharedMemory(t)
	fd, offset, ok := NewShared(mem, 7, 4096).Location()
	require.Equal(t, 7, fd)
	require.Equal(t, int64(4096), offset)
	require.True(t, ok)
	_, _, ok = NewShared(mem, -1, 0).Location()
	require.False(t, ok)
	_, _, ok = NewLocal().Location()
	require.False(t, ok)
}

func TestSharedBellRefusesUnusableMemory(t *testing.T) {
	mem := sharedMemory(t)
	require.Panics(t, func() { NewShared(mem[4:], -1, 0) }, "misaligned")
	require.Panics(t, func() { NewShared(mem[:Size-1], -1, 0) }, "too short")
}

func TestWaitingIsTrueUntilTheWaiterLeaves(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		require.False(t, b.Waiting())
		var flag atomic.Bool
		result := waited(testwatch.Context(t), b, flag.Load)
		untilParked(t, b, 0)
		require.True(t, b.Waiting())
		flag.Store(true)
		b.Ring()
		require.NoError(t, <-result)
		require.False(t, b.Waiting())
	})
}
