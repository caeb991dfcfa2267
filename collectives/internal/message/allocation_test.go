package message_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A standby holds the members of a net, each in a goroutine that waits to make
// its call.
type standby struct {
	start []chan struct{}
	done  chan error
}

func newStandby(t *testing.T, w *net, call func(ctx context.Context, m *member) error) *standby {
	c := &standby{done: make(chan error, len(w.members))}
	ctx := t.Context()
	for _, m := range w.members {
		start := make(chan struct{}, 1)
		c.start = append(c.start, start)
		go func() {
			for range start {
				c.done <- call(ctx, m)
			}
		}()
	}
	t.Cleanup(func() {
		for _, start := range c.start {
			close(start)
		}
	})
	return c
}

// call has all members make their call once.
func (c *standby) call() (failed error) {
	for _, start := range c.start {
		start <- struct{}{}
	}
	for range c.start {
		if err := <-c.done; err != nil {
			failed = err
		}
	}
	return failed
}

// Not parallel: allocations of other tests would count.
func TestCallsAllocateNothingInSteadyState(t *testing.T) {
	const n = 5
	everyAlgorithm(t, func(t *testing.T, al *message.Algorithm) {
		members := n
		if al.Needs&message.EvenSize != 0 {
			members++
		}
		w := newNet(members, 2)
		args := make([]*message.Args, members)
		arenas := make([]message.Arena, members)
		for i := range args {
			args[i] = alikeArgs(al, members, members*128)
			args[i].Root, args[i].Segment, args[i].Scratch = 1, 24, arenas[i].Take
			args[i].Hosts = message.NewHosts([]int{0, 0, 1, 1, 2, 2}[:members])
		}
		c := newStandby(t, w, func(ctx context.Context, m *member) error {
			arenas[m.rank].Reset()
			return al.Run(ctx, m, args[m.rank])
		})
		for range 3 { // arenas grow, and goroutines learn to wait
			require.NoError(t, c.call())
		}
		require.Zero(t, testing.AllocsPerRun(20, func() {
			if err := c.call(); err != nil {
				t.Error(err)
			}
		}))
	})
}

func TestArenaGrowsToTheNeedOfCalls(t *testing.T) {
	var arena message.Arena
	call := func() (one, two []byte) {
		arena.Reset()
		one, two = arena.Take(100), arena.Take(200)
		return one, two
	}
	one, two := call()
	copy(one, "one")
	copy(two, "two")
	require.Equal(t, "one", string(one[:3]), "what was taken before stays when the arena grows")
	require.Len(t, one, 100)
	require.Len(t, two, 200)
	call()
	require.Zero(t, testing.AllocsPerRun(10, func() { call() }))
	one, two = call()
	require.Equal(t, 100, cap(one), "no append reaches what is another's")
	one[99] = 1
	two[0] = 2
	require.Equal(t, byte(1), one[99])
}
