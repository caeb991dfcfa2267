package collectives

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/collectives/loggp"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// A recorder is a transport that notes the messages that this member sends.
type recorder struct {
	*transport
	sent []loggp.Message
}

func (r *recorder) note(to, bytes int) {
	if !r.nothing(to, bytes) {
		r.sent = append(r.sent, loggp.Message{From: r.Rank(), To: to, Bytes: bytes})
	}
}

func (r *recorder) Send(ctx context.Context, to int, src []byte) error {
	r.note(to, len(src))
	return r.transport.Send(ctx, to, src)
}

func (r *recorder) SendFold(ctx context.Context, to int, src []byte) error {
	r.note(to, len(src))
	return r.transport.SendFold(ctx, to, src)
}

func (r *recorder) Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error {
	r.note(to, len(src))
	return r.transport.Exchange(ctx, to, src, from, dst)
}

func (r *recorder) ExchangeFold(ctx context.Context, to int, src []byte, from int, f message.Folding) error {
	r.note(to, len(src))
	return r.transport.ExchangeFold(ctx, to, src, from, f)
}

func (r *recorder) ExchangeAll(ctx context.Context, b message.Batch) error {
	for k := range b.Steps() {
		if s := b.Step(k); s.To != noMember {
			r.note(s.To, len(s.Src))
		}
	}
	return r.transport.ExchangeAll(ctx, b)
}

// TestReplaySendsTheMessagesOfAJob compares, for each algorithm and member, the order,
// destinations and lengths of messages.
func TestReplaySendsTheMessagesOfAJob(t *testing.T) {
	for _, shape := range []struct{ ranks, perHost int }{{2, 1}, {3, 1}, {8, 1}, {6, 2}, {16, 4}, {64, 8}} {
		if testwatch.Race && shape.ranks > 16 {
			continue // each of the ranks waits in turn, for half of the package's time
		}
		m := &loggp.Machine{Ranks: shape.ranks, PerHost: shape.perHost}
		t.Run(fmt.Sprintf("%d ranks, %d on a host", shape.ranks, shape.perHost), func(t *testing.T) {
			want := replays(t, m)
			var mu sync.Mutex
			got := map[loggp.Call][][]loggp.Message{}
			testjob.Config{Provider: "loop", Queued: true, Ranks: shape.ranks}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				for _, call := range calls(m) {
					sent := sentBy(ctx, r, m, call)
					mu.Lock()
					if got[call] == nil {
						got[call] = make([][]loggp.Message, shape.ranks)
					}
					got[call][r.Me] = sent
					mu.Unlock()
					r.NoError(r.World.Barrier(ctx))
				}
			})
			for _, call := range calls(m) {
				require.Equal(t, want[call], got[call], "%s by %s", call.Collective, call.Algorithm)
			}
		})
	}
}

// calls returns a call by each algorithm.
func calls(m *loggp.Machine) []loggp.Call {
	var all []loggp.Call
	for _, c := range loggp.Collectives() {
		for _, al := range loggp.Algorithms(m, c) {
			all = append(all, loggp.Call{Collective: c, Algorithm: al, Bytes: 24 * m.Ranks})
		}
	}
	return all
}

// replays returns the messages of each call by each member in a replay.
func replays(t *testing.T, m *loggp.Machine) map[loggp.Call][][]loggp.Message {
	all := map[loggp.Call][][]loggp.Message{}
	for _, call := range calls(m) {
		sent := make([][]loggp.Message, m.Ranks)
		result, err := loggp.Run(m, call, func(one loggp.Message) { sent[one.From] = append(sent[one.From], one) })
		require.NoError(t, err)
		require.EqualValues(t, len(slices.Concat(sent...)), result.Messages)
		require.NotZero(t, result.Messages)
		all[call] = sent
	}
	return all
}

// sentBy makes a call over the job's own transport and returns the messages that this member sent.
func sentBy(ctx context.Context, r *testjob.Rank, m *loggp.Machine, call loggp.Call) []loggp.Message {
	c, _ := message.Named(call.Collective)
	al, ok := message.Find(c, call.Algorithm)
	r.True(ok)
	var arena message.Arena
	a := &message.Args{Elem: 1, Send: make([]byte, call.Bytes), Recv: make([]byte, call.Bytes), Commutative: true, Scratch: arena.Take,
		Combine: func(dst, left, right []byte) {
			for i := range dst {
				dst[i] = left[i] + right[i]
			}
		}}
	switch c {
	case message.Gather, message.AllGather:
		a.Send = a.Send[:call.Bytes/m.Ranks]
	case message.Scatter, message.ReduceScatter:
		a.Recv = a.Recv[:call.Bytes/m.Ranks]
	}
	if al.Needs&message.HostMap != 0 {
		host := make([]int, m.Ranks)
		for i := range host {
			host[i] = i / m.PerHost
		}
		a.Hosts = message.NewHosts(host)
	}
	rec := &recorder{}
	r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
		rec.transport = p
		return al.Run(ctx, rec, a)
	}))
	return rec.sent
}
