package message_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

func TestOnlyLeadersSendToOtherHosts(t *testing.T) {
	host := []int{4, 4, 4, 2, 2, 9, 9}
	const root = 4 // leads host 2 in place of member 3
	for c := message.Broadcast; c <= message.ExScan; c++ {
		t.Run(c.String(), func(t *testing.T) {
			al, ok := message.Find(c, "two-level")
			require.True(t, ok)
			w := newNet(len(host), 1)
			w.finish(t, func(ctx context.Context, m *member) error {
				a := alikeArgs(&al, len(host), len(host)*64)
				a.Root, a.Hosts = root, message.NewHosts(host)
				return al.Run(ctx, m, a)
			})
			leaders := []int{0, 3, 5}
			switch c {
			case message.Broadcast, message.Reduce, message.Gather, message.Scatter:
				leaders = []int{0, root, 5}
			case message.Scan, message.ExScan:
				leaders = []int{2, 4, 6}
			}
			between := 0
			for from, m := range w.members {
				for to, n := range m.sent {
					if n > 0 && host[from] != host[to] {
						require.Contains(t, leaders, from, "to %d", to)
						require.Contains(t, leaders, to, "from %d", from)
						between++
					}
				}
			}
			require.Positive(t, between)
		})
	}
}

// TestBytesCrossBetweenHostsAsOftenAsTwoLevelsPromise counts, in blocks, the bytes between three
// hosts. A vector has seven blocks.
func TestBytesCrossBetweenHostsAsOftenAsTwoLevelsPromise(t *testing.T) {
	host := []int{0, 0, 0, 1, 1, 2, 2}
	const block = 64
	for c, want := range map[message.Collective]int{
		message.Broadcast:     2 * 7, // the vector to each other host, once
		message.Reduce:        2 * 7,
		message.AllReduce:     4 * 7, // recursive doubling of three takes four messages
		message.Gather:        4,     // each block of another host, once
		message.Scatter:       4,
		message.AllGather:     2 * 7,       // each block to two hosts, once
		message.ReduceScatter: 2 * 7,       // each block of a sum from two hosts, once
		message.AllToAll:      49 - 17,     // each block between members of different hosts, once
		message.Scan:          (2 + 1) * 7, // each host's sum to each later host, by doubling
		message.ExScan:        (2 + 1) * 7,
	} {
		al, ok := message.Find(c, "two-level")
		require.True(t, ok)
		w := newNet(len(host), 1)
		w.finish(t, func(ctx context.Context, m *member) error {
			a := alikeArgs(&al, len(host), len(host)*block)
			a.Hosts = message.NewHosts(host)
			return al.Run(ctx, m, a)
		})
		bytes := 0
		for from, m := range w.members {
			for to, n := range m.sent {
				if host[from] != host[to] {
					bytes += n
				}
			}
		}
		require.Equal(t, want*block, bytes, "%v", c)
	}
}

// A level lists the parts of a two-level algorithm within hosts or among them, and
// the bytes of each.
type level []struct {
	part  message.Collective
	bytes int
}

// levels returns the parts of an algorithm with m bytes on each of so many hosts
// of s members.
func levels(c message.Collective, m, hosts, s int) (within, among level) {
	switch c {
	case message.AllReduce:
		return level{{message.Reduce, m}, {message.Broadcast, m}}, level{{c, m}}
	case message.Gather, message.Scatter:
		return level{{c, m / hosts}}, level{{c, m}}
	case message.AllGather:
		return level{{message.Gather, m / hosts}, {message.Broadcast, m}}, level{{c, m}}
	case message.ReduceScatter:
		return level{{message.Reduce, m}, {message.Scatter, m / hosts}}, level{{c, m}}
	case message.AllToAll:
		return level{{message.Gather, s * m}, {message.Scatter, s * m}}, level{{c, s * m}}
	case message.Scan, message.ExScan:
		return level{{c, m}, {message.Broadcast, m}}, level{{message.ExScan, m}}
	}
	return level{{c, m}}, level{{c, m}}
}

// partOf returns the algorithm of each part in tests of costs.
func partOf(c message.Collective) message.Algorithm {
	name := map[message.Collective]string{
		message.Broadcast: "binomial", message.Reduce: "binomial", message.Gather: "linear", message.Scatter: "linear",
		message.AllGather: "ring", message.ReduceScatter: "pairwise", message.AllToAll: "pairwise",
	}[c]
	if name == "" {
		name = "recursive-doubling"
	}
	al, ok := message.Find(c, name)
	if !ok {
		panic(name)
	}
	return al
}

// cost adds up the costs of the parts for members that make them one after
// another.
func (l level) cost(members int) (sum message.Cost) {
	for _, p := range l {
		al := partOf(p.part)
		cost := al.Cost(members, p.bytes, 0)
		sum.Rounds, sum.Bytes = sum.Rounds+cost.Rounds, sum.Bytes+cost.Bytes
	}
	return sum
}

// TestTwoLevelCallsTakeTheRoundsAndBytesOfTheirLevels counts each level while the second level
// costs nothing.
func TestTwoLevelCallsTakeTheRoundsAndBytesOfTheirLevels(t *testing.T) {
	run := func(c message.Collective) message.Func { return partOf(c).Run }
	free := func(message.Collective) message.Func {
		return func(context.Context, message.Transport, *message.Args) error { return nil }
	}
	for c := message.Broadcast; c <= message.ExScan; c++ {
		t.Run(c.String(), func(t *testing.T) {
			al, ok := message.Find(c, "two-level")
			require.True(t, ok)
			for _, hosts := range []int{2, 3, 4, 7} {
				for _, s := range []int{1, 2, 3, 4} {
					var of []int
					for i := range hosts * s {
						of = append(of, i/s)
					}
					m := hosts * s * 24
					within, among := levels(c, m, hosts, s)
					counted := costOf(t, &al, hosts*s, m, func(a *message.Args) {
						a.Hosts = message.NewHosts(of)
						a.Hosts.Within, a.Hosts.Among = free, run
					})
					require.Equal(t, among.cost(hosts), counted, "among %d hosts of %d", hosts, s)
					counted = costOf(t, &al, hosts*s, m, func(a *message.Args) {
						a.Hosts = message.NewHosts(of)
						a.Hosts.Within, a.Hosts.Among = run, free
					})
					require.Equal(t, within.cost(s), counted, "within %d hosts of %d", hosts, s)
				}
			}
		})
	}
}

func TestRunsReportsWhetherMembersOfHostsFollowOneAnother(t *testing.T) {
	for _, host := range [][]int{{1}, {1, 1, 1}, {3, 3, 1, 2, 2}} {
		require.True(t, message.NewHosts(host).Runs(), "%v", host)
	}
	for _, host := range [][]int{{1, 2, 1}, {1, 2, 3, 2}} {
		require.False(t, message.NewHosts(host).Runs(), "%v", host)
	}
	require.Equal(t, 3, message.NewHosts([]int{7, 5, 7, 6}).Count())
}

func TestEvenReportsWhetherHostsHaveEquallyManyMembers(t *testing.T) {
	for _, host := range [][]int{{1}, {1, 1, 1}, {3, 1, 1, 3}, {1, 2, 3}} {
		require.True(t, message.NewHosts(host).Even(), "%v", host)
	}
	for _, host := range [][]int{{1, 2, 1}, {1, 1, 2, 2, 3}} {
		require.False(t, message.NewHosts(host).Even(), "%v", host)
	}
}

func TestSubNumbersItsMembersInTheOrderOfItsList(t *testing.T) {
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
