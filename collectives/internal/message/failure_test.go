package message_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

func TestErrorOfSendOrRecvEndsTheCallAtAllMembers(t *testing.T) {
	everyAlgorithm(t, func(t *testing.T, al *message.Algorithm) {
		t.Parallel()
		for n := 2; n <= 6; n++ {
			if al.Needs&message.EvenSize != 0 && n%2 != 0 {
				continue
			}
			for rank := range n {
				for call := 1; failsAt(t, al, n, rank, call); call++ {
					require.Less(t, call, 100)
				}
			}
		}
	})
}

// failsAt has one call of the transport fail at one member, and reports whether
// the algorithm made that call.
func failsAt(t *testing.T, al *message.Algorithm, n, rank, call int) bool {
	w := newNet(n, 0)
	w.members[rank].fail = call
	hosts := []int{0, 0, 1, 1, 2, 2}[:n]
	errs := w.run(func(ctx context.Context, m *member) error {
		a := alikeArgs(al, n, n*16)
		a.Root, a.Segment, a.Hosts = 1, 24, message.NewHosts(hosts)
		return al.Run(ctx, m, a)
	})
	if w.members[rank].calls < call {
		for _, err := range errs {
			require.NoError(t, err)
		}
		return false
	}
	require.ErrorIs(t, errs[rank], errInjected, "member %d of %d, call %d", rank, n, call)
	for other, err := range errs {
		if other != rank && err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	return true
}

func TestCanceledCallEnds(t *testing.T) {
	everyAlgorithm(t, func(t *testing.T, al *message.Algorithm) {
		t.Parallel()
		w := newNet(4, 0)
		errs := w.run(func(ctx context.Context, m *member) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			a := alikeArgs(al, 4, 4096)
			a.Hosts = message.NewHosts([]int{0, 0, 1, 1})
			return al.Run(ctx, m, a)
		})
		canceled := 0
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				canceled++
			}
		}
		require.Positive(t, canceled)
	})
}
