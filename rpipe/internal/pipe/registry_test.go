package pipe

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowToLeave is a lingering end whose first leave lasts until it is let go.
type slowToLeave struct {
	once         *sync.Once
	asked, letGo chan struct{}
}

func (s slowToLeave) Leave() bool {
	s.once.Do(func() {
		close(s.asked)
		<-s.letGo
	})
	return false
}

// TestTheTimerRunsWhileEndsLingerThoughASweepIsUnderWay has the registry set its timer
// while another goroutine, which does not set it, asks an end to leave.
func TestTheTimerRunsWhileEndsLingerThoughASweepIsUnderWay(t *testing.T) {
	end := slowToLeave{new(sync.Once), make(chan struct{}), make(chan struct{})}
	r := &Registry{open: map[Stopper]struct{}{}, lingering: []lingerer{end}}
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		r.sweep()
	}()
	<-end.asked
	r.later()
	r.mu.Lock()
	timer, lingering := r.timer, len(r.lingering)
	r.open = nil // no tick sets the timer again
	r.mu.Unlock()
	close(end.letGo)
	<-swept
	require.NotNil(t, timer, "the timer is set")
	timer.Stop()
	require.Equal(t, 1, lingering)
}
