package collectives

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
)

func TestLastMessageLeavesAtOnceIfTheProgramComputes(t *testing.T) {
	const calls = 10
	for name, c := range map[string]struct {
		between, within, leaving time.Duration
		waits, apart             bool
		leaves                   int
	}{
		"one after the other":               {leaves: 1}, // the first, long after the beginning
		"the program computes":              {between: time.Millisecond, leaves: calls},
		"calls last long without waiting":   {within: time.Millisecond, leaves: 1},
		"on a core each, they last long":    {within: time.Millisecond, apart: true, leaves: calls},
		"calls wait":                        {within: time.Millisecond, waits: true, leaves: calls},
		"others take the core when it has":  {leaving: time.Millisecond, leaves: 1},
		"they do, and the program computes": {between: time.Millisecond, leaving: time.Millisecond, leaves: calls},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Second
			p := pace{clock: func() time.Duration { return now }, crowded: !c.apart}
			left := 0
			for range calls {
				now += c.between
				p.begin()
				now += c.within
				p.end(c.waits, func() {
					left++
					now += c.leaving
				})
			}
			require.Equal(t, c.leaves, left)
		})
	}
}

// TestPaceCountsCallsInWhichTheMemberWaited has a member wait for a late one, which waits for no member.
func TestPaceCountsCallsInWhichTheMemberWaited(t *testing.T) {
	for _, size := range []int{8, ringed, pieceMost - 1} {
		onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
			mem, waits := make([]byte, size), 0
			for range 10 {
				r.NoError(r.World.Barrier(ctx)) // the late member has room: its peer has taken all messages
				r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
					r.False(p.waited, "before the call")
					if r.Me == 1 {
						time.Sleep(5 * time.Millisecond)
						err := p.Send(ctx, 0, mem)
						r.False(p.waited)
						return err
					}
					err := p.Recv(ctx, 1, mem)
					if p.waited {
						waits++
					}
					return err
				}))
			}
			if r.Me == 0 {
				r.NotZero(waits)
			}
		})
	}
}
