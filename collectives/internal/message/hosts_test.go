package message_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

func TestOnlyLeadersTalkToOtherHosts(t *testing.T) {
	host := []int{4, 4, 4, 2, 2, 9, 9}
	const root = 4 // leads host 2 in place of member 3
	for _, c := range []message.Collective{message.Broadcast, message.Reduce, message.AllReduce, message.AllGather} {
		t.Run(c.String(), func(t *testing.T) {
			al, ok := message.Find(c, "two-level")
			require.True(t, ok)
			w := newNet(len(host), 1)
			w.finish(t, func(ctx context.Context, m *member) error {
				a := alikeArgs(&al, len(host), len(host)*64)
				a.Root, a.Hosts = root, message.NewHosts(host)
				return al.Run(ctx, m, a)
			})
			leaders := map[int]bool{0: true, 3: true, 5: true}
			if c == message.Broadcast || c == message.Reduce {
				leaders = map[int]bool{0: true, root: true, 5: true}
			}
			between := 0
			for from, m := range w.members {
				for to, n := range m.sent {
					if n > 0 && host[from] != host[to] {
						require.True(t, leaders[from] && leaders[to], "%d to %d", from, to)
						between++
					}
				}
			}
			require.Positive(t, between)
		})
	}
}

func TestHostsKnowWhetherTheirMembersFollowOneAnother(t *testing.T) {
	for _, host := range [][]int{{1}, {1, 1, 1}, {3, 3, 1, 2, 2}} {
		require.True(t, message.NewHosts(host).Runs(), "%v", host)
	}
	for _, host := range [][]int{{1, 2, 1}, {1, 2, 3, 2}} {
		require.False(t, message.NewHosts(host).Runs(), "%v", host)
	}
	require.Equal(t, 3, message.NewHosts([]int{7, 5, 7, 6}).Count())
}

func TestASubTeamNumbersItsMembersInTheOrderOfItsList(t *testing.T) {
	t.Parallel()
	members := []int{3, 0, 4}
	w := newNet(5, 1)
	w.finish(t, func(ctx context.Context, m *member) error {
		if m.rank != 3 && m.rank != 0 && m.rank != 4 {
			return nil
		}
		sub := message.NewSub(m, members)
		if sub.Size() != 3 || members[sub.Rank()] != m.rank {
			return fmt.Errorf("member %d of %d", sub.Rank(), sub.Size())
		}
		all := make([]byte, 3)
		own := all[sub.Rank():][:1]
		own[0] = byte(m.rank)
		if err := message.AllGatherRing(ctx, sub, &message.Args{Elem: 1, Send: own, Recv: all}); err != nil {
			return err
		}
		if !bytes.Equal(all, []byte{3, 0, 4}) {
			return fmt.Errorf("member %d gathered %v", sub.Rank(), all)
		}
		return nil
	})
}
