package wait

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// rounds is the number of times that a turn passes.
func rounds() uint64 { return uint64(testwatch.Rounds(testwatch.ShortOr(10_000, 100_000))) }

// waits are the ways into a bell: with the polling that most waits end in,
// and straight to sleep, where wake-ups can be lost.
var waits = map[string]func(*Bell, context.Context, func() bool) error{
	"spinning first": (*Bell).Wait,
	"parking": func(b *Bell, ctx context.Context, ready func() bool) error {
		return b.park(ctx, Manner{}, ready)
	},
	"parking with pauses": func(b *Bell, ctx context.Context, ready func() bool) error {
		return b.park(ctx, Manner{Longest: LongestPause}, ready)
	},
}

func TestNoWakeupIsLostBetweenTwoGoroutines(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			onEachBackend(t, func(t *testing.T, bell func() *Bell) {
				require.NoError(t, pingPong([2]*Bell{bell(), bell()}, wait))
			})
		})
	}
}

// pingPong hands a turn to and fro; each side sleeps on its own bell.
func pingPong(bells [2]*Bell, wait func(*Bell, context.Context, func() bool) error) error {
	var turn atomic.Uint64
	guard := newGuard()
	defer guard.stop()
	g, ctx := errgroup.WithContext(guard)
	for side := range uint64(2) {
		g.Go(func() error {
			for n := side; n < 2*rounds(); n += 2 {
				if err := wait(bells[side], ctx, func() bool { return turn.Load() == n }); err != nil {
					return fmt.Errorf("turn %d: %w", n, err)
				}
				guard.progress(n)
				turn.Store(n + 1)
				bells[1-side].Ring()
			}
			return nil
		})
	}
	return g.Wait()
}

// The leader in the futex leaves first here, so that the lead must pass on.
func TestNoWakeupIsLostAmongManyWaitersOfOneBell(t *testing.T) {
	const waiters = 8
	each := uint64(testwatch.Rounds(testwatch.ShortOr(2_000, 5_000)))
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b, answers := bell(), bell()
		var asked, answered [waiters]atomic.Uint64
		guard := newGuard()
		defer guard.stop()
		g, ctx := errgroup.WithContext(guard)
		for i := range waiters {
			g.Go(func() error {
				for n := uint64(1); n <= each; n++ {
					if err := b.park(ctx, Manner{}, func() bool { return asked[i].Load() == n }); err != nil {
						return fmt.Errorf("waiter %d, question %d: %w", i, n, err)
					}
					answered[i].Store(n)
					answers.Ring()
				}
				return nil
			})
		}
		g.Go(func() error {
			for n := range waiters * each {
				i := n * 5 % waiters // 5 and 8 are coprime: each waiter in turn, not in order
				asked[i].Add(1)
				b.Ring()
				guard.progress(n)
				want := n/waiters + 1
				if err := answers.park(ctx, Manner{}, func() bool { return answered[i].Load() == want }); err != nil {
					return fmt.Errorf("answer of waiter %d to question %d: %w", i, want, err)
				}
			}
			return nil
		})
		require.NoError(t, g.Wait())
		require.Zero(t, b.words.waiters.Load())
	})
}

// The test rings the bell after the last look ahead of the announcement. No waiter counts
// yet, so the ring wakes none, and only the look between announcing and sleeping finds the
// condition true.
func TestWaiterLooksAgainBeforeItSleeps(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		var flag atomic.Bool
		flag.Store(true)
		b.Ring()
		ctx, rescue := context.WithCancelCause(testwatch.Context(t))
		defer rescue(nil)
		result := make(chan error, 1)
		go func() { result <- b.park(ctx, Manner{}, flag.Load) }() // as a wait goes on after its looks
		require.Eventually(t, func() bool { return len(result) == 1 || b.Parks() > 0 }, testwatch.Patience(), testwatch.Patience()/10_000)
		if b.Parks() > 0 {
			rescue(errLostWakeup)
			<-result
			require.NoError(t, errLostWakeup)
		}
		require.NoError(t, <-result)
	})
}

// Canceling and ringing race here; whichever wins, the wait ends.
func TestCancellationRacingWithRingsAlwaysEndsTheWait(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b, guard := bell(), newGuard()
		defer guard.stop()
		for n := range uint64(2_000) {
			guard.progress(n)
			ctx, cancel := context.WithCancel(guard)
			var flag atomic.Bool
			result := make(chan error, 1)
			go func() { result <- b.park(ctx, Manner{}, flag.Load) }()
			var racers sync.WaitGroup
			racers.Go(cancel)
			racers.Go(func() { flag.Store(true); b.Ring() })
			if err := <-result; err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			racers.Wait()
			require.NotErrorIs(t, context.Cause(guard), testwatch.ErrStuck)
		}
		require.Zero(t, b.words.waiters.Load())
	})
}
