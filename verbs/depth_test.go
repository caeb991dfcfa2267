package verbs

import (
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// slots models a send queue by its obvious account: the posted requests in
// order, and whether each is signaled.
type slots struct {
	depth  int
	queue  []bool
	marked int
}

func (s *slots) post(signaled bool) {
	s.queue = append(s.queue, signaled)
	if signaled {
		s.marked++
	}
}

func (s *slots) complete() {
	for i, signaled := range s.queue {
		if signaled {
			s.queue, s.marked = s.queue[i+1:], s.marked-1
			return
		}
	}
}

func request(signaled bool) []WorkRequest {
	if signaled {
		return []WorkRequest{{Flags: Signaled}}
	}
	return []WorkRequest{{}}
}

func TestSendDepthMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 9).Draw(t, "depth")
		want := slots{depth: depth}
		var d sendDepth
		d.init(depth)
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				if d.room() == 0 {
					t.Skip("full")
				}
				signaled := rapid.Bool().Draw(t, "signaled")
				d.take(request(signaled))
				want.post(signaled)
			},
			"provider refuses": func(t *rapid.T) {
				if d.room() == 0 {
					t.Skip("full")
				}
				wrs := request(rapid.Bool().Draw(t, "signaled"))
				d.take(wrs)
				d.untake(wrs)
			},
			"complete": func(t *rapid.T) {
				d.complete() // no request is signaled: the completion is from before a reset
				want.complete()
			},
			"reset": func(*rapid.T) {
				d.reset()
				want = slots{depth: depth}
			},
			"": func(t *rapid.T) {
				require.Equal(t, want.depth-len(want.queue), d.room())
			},
		})
	})
}

func TestSendDepthLeavesCountingToTheProviderAfterAFailure(t *testing.T) {
	var d sendDepth
	d.init(2)
	d.take(request(true))
	d.take(request(false))
	require.Zero(t, d.room())
	d.inexact.Store(true)
	require.Equal(t, 2, d.room())
	d.take(request(true))
	d.complete()
	d.untake(request(true))
	require.Equal(t, 2, d.room())
	d.reset()
	require.Equal(t, 2, d.room())
	d.take(request(true))
	require.Equal(t, 1, d.room())
}

func TestSlotsRetiredOutOfOrderStayFree(t *testing.T) {
	var d sendDepth
	d.init(8)
	d.posted = 5
	d.retire(5)
	d.retire(3) // a poller that was overtaken
	require.Equal(t, 8, d.room())
}

func TestSendDepthIsExactWithManyPollers(t *testing.T) {
	var d sendDepth
	d.init(8)
	done := make(chan struct{}, 8) // a completion for each signaled request
	const rounds = 20000
	var pollers sync.WaitGroup
	for range 3 {
		pollers.Go(func() {
			for range done {
				d.complete()
			}
		})
	}
	for i := range rounds {
		for d.room() == 0 {
			goruntime.Gosched()
		}
		signaled := i%3 != 0 || d.room() == 1
		d.take(request(signaled))
		if signaled {
			done <- struct{}{}
		}
	}
	close(done)
	pollers.Wait()
	d.take(request(true))
	d.complete()
	require.Equal(t, 8, d.room())
}
