package pipe

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/rpipe/internal/turn"
	"github.com/gopgas/gopgas/runtime"
)

// absentMemory is that of an end whose peer has set nothing.
type absentMemory struct{ PeerMemory }

func (absentMemory) Flag(int) uint64 { return 0 }

// absentLayer does not reach the peer, which may be alive.
type absentLayer struct{ Layer }

func (absentLayer) Err() error { return runtime.ErrUnreachable }

// slowRole lasts, the first time, until it is let go.
type slowRole struct {
	Role
	once          *sync.Once
	called, letGo chan struct{}
}

func (s slowRole) Heard() bool {
	s.once.Do(func() {
		close(s.called)
		<-s.letGo
	})
	return false
}

// TestRegistrySetsTimerDuringSweep has the registry set its timer while another
// goroutine, which does not set it, looks after an end.
func TestRegistrySetsTimerDuringSweep(t *testing.T) {
	slow := slowRole{once: new(sync.Once), called: make(chan struct{}), letGo: make(chan struct{})}
	p := &End{Link: Link{PeerMemory: absentMemory{}}, Options: Options{Layer: absentLayer{}}, Role: slow}
	p.closing.known.absent = true
	r := &Registry{life: t.Context(), open: map[*End]struct{}{}, closing: map[*End]struct{}{p: {}}}
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		r.sweep(false)
	}()
	<-slow.called
	r.later()
	r.mu.Lock()
	timer, lingering := r.timer, len(r.closing)
	r.open = nil // no tick sets the timer again
	r.mu.Unlock()
	require.False(t, p.Advance(context.Background(), true), "another goroutine advances the end")
	close(slow.letGo)
	<-swept
	require.NotNil(t, timer, "the timer is set")
	timer.Stop()
	require.Equal(t, 1, lingering)
}

// countedRole counts the looks at its end.
type countedRole struct {
	Role
	looks *int
}

func (c countedRole) Heard() bool {
	*c.looks++
	return false
}

// TestOpeningLooksAtTheEndsClosedLast has ends whose peers never open.
func TestOpeningLooksAtTheEndsClosedLast(t *testing.T) {
	r := &Registry{life: t.Context(), open: map[*End]struct{}{}, closing: map[*End]struct{}{}}
	looks := make([]int, 3*maxRecent)
	ends := make([]*End, len(looks))
	for i := range looks {
		ends[i] = &End{Link: Link{PeerMemory: absentMemory{}}, Options: Options{Layer: absentLayer{}}, Role: countedRole{looks: &looks[i]}}
		ends[i].closing.known.absent = true
		r.gather(ends[i])
	}
	r.sweepRecent()
	for i, n := range looks {
		require.Equal(t, i >= len(looks)-maxRecent, n > 0, i)
	}
	last := len(ends) - 1
	ends[last].closing.released = true
	r.sweepRecent()
	before := looks[last-1]
	r.sweepRecent()
	require.NotContains(t, r.closing, ends[last])
	require.NotContains(t, r.recent, ends[last], "it is let go")
	require.Greater(t, looks[last-1], before)
}

// stopRole has a function for Stop.
type stopRole struct {
	Role
	stop func()
}

func (s stopRole) Stop() { s.stop() }

// TestRegistryStopsEndsWithoutItsMutex stops ends by Close and by Desert. A Stop may wait for
// a device, and other ends are opened and closed meanwhile.
func TestRegistryStopsEndsWithoutItsMutex(t *testing.T) {
	for name, stop := range map[string]func(r *Registry, l Layer){
		"Close":  func(r *Registry, _ Layer) { r.Close() },
		"Desert": func(r *Registry, l Layer) { r.Desert(l, ErrPoolClosed) },
	} {
		t.Run(name, func(t *testing.T) {
			r := &Registry{life: t.Context(), open: map[*End]struct{}{}, opening: turn.New(), endLife: func() {}}
			l, stopped := &absentLayer{}, 0
			p := &End{Options: Options{Layer: l}, Role: stopRole{stop: func() {
				require.True(t, r.mu.TryLock())
				r.mu.Unlock()
				stopped++
			}}}
			r.open[p] = struct{}{}
			stop(r, l)
			require.Equal(t, 1, stopped)
		})
	}
}

// countGet counts the calls that end a get.
type countGet struct {
	Getting
	ended int
}

func (c *countGet) Wait(context.Context) error {
	c.ended++
	return nil
}

// TestStoppedReaderEndsItsGets stops a reader beside a call that reads, and without one.
func TestStoppedReaderEndsItsGets(t *testing.T) {
	get := &countGet{}
	r := &Reader{End: &End{}, returns: &returns{}}
	r.fetches = &fetches{r: r, ring: []fetch{{get: get, under: true}}, ahead: 1}
	r.calling.Lock()
	r.Stop()
	require.Zero(t, get.ended, "the call uses its gets")
	r.called()
	require.Equal(t, 1, get.ended)
	r.fetches.ring[0].under = true
	r.Stop()
	require.Equal(t, 2, get.ended)
}
