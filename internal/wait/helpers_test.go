package wait

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// errLostWakeup is the error of a test whose waiter sleeps although its condition
// holds.
var errLostWakeup = errors.New("a waiter sleeps although its condition is true and the bell was rung")

// A guard ends a stress test that makes no progress, however long it takes as
// a whole.
type guard struct {
	context.Context
	stop   context.CancelFunc
	rounds atomic.Uint64
}

func newGuard() *guard {
	g := &guard{}
	g.Context, g.stop = testwatch.With(context.Background(), g.rounds.Load)
	return g
}

// progress says that round n was reached.
func (g *guard) progress(n uint64) { g.rounds.Store(n) }

// sharedMemory returns pages that other processes could map. They stay until
// this process ends, as a heap's do: the ring of a canceled wait may come late.
func sharedMemory(t testing.TB) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	return mem
}

// onEachBackend runs f with a bell of this process and with a shared one.
func onEachBackend(t *testing.T, f func(t *testing.T, bell func() *Bell)) {
	t.Run("local", func(t *testing.T) { f(t, NewLocal) })
	t.Run("shared", func(t *testing.T) {
		f(t, func() *Bell { return NewShared(sharedMemory(t), -1, 0) })
	})
}

// untilParked returns once goroutines of this process went to sleep on b more
// than n times.
func untilParked(t *testing.T, b *Bell, n uint64) {
	t.Helper()
	require.Eventually(t, func() bool { return b.Parks() > n }, testwatch.Patience(), time.Millisecond)
}

// waited runs Wait in a goroutine and hands its result over.
func waited(ctx context.Context, b *Bell, ready func() bool) <-chan error {
	result := make(chan error, 1)
	go func() { result <- b.Wait(ctx, ready) }()
	return result
}

func never() bool { return false }
