package loggp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// link has constants whose sums show which of them were counted.
func link() Link {
	return Link{Latency: 100_000, Send: 1000, SendPerByte: 1, Receive: 2000, ReceivePerByte: 2, Gap: 5000, PerByte: 10}
}

func alone(ranks int) *Machine {
	return &Machine{Ranks: ranks, PerHost: 1, Within: link(), Among: link()}
}

// timeOf returns the time of a broadcast.
func timeOf(t *testing.T, m *Machine, algorithm string, bytes int) time.Duration {
	r, err := Run(m, Call{Collective: "broadcast", Algorithm: algorithm, Bytes: bytes}, nil)
	require.NoError(t, err)
	return r.Time
}

func TestMessageTakesTheTimesOfTheModel(t *testing.T) {
	// o + O·8 at the sender, L + G·8 on the way, o + O·8 at the receiver.
	require.Equal(t, time.Duration(1008+100_080+2016), timeOf(t, alone(2), "linear", 8))
}

func TestSenderLeavesTheGapBetweenMessages(t *testing.T) {
	// The third message begins two gaps after the first, each longer by O·8.
	require.Equal(t, time.Duration(2*(5000+8)+1008+100_080+2016), timeOf(t, alone(4), "linear", 8))
}

func TestLongMessagesLeaveTheirHostOneAfterTheOther(t *testing.T) {
	m := alone(3)
	m.Among.SendPerByte, m.Among.ReceivePerByte = 0, 0
	// 1000 bytes take 10,000 ns on the way, more than the gap.
	require.Equal(t, time.Duration(1000+10_000+100_000+10_000+2000), timeOf(t, m, "linear", 1000))
}

func TestRanksOfAHostShareItsPort(t *testing.T) {
	l := Link{PerByte: 10}
	exchange := func(m *Machine) time.Duration {
		r, err := Run(m, Call{Collective: "all-to-all", Algorithm: "pairwise", Bytes: 100 * m.Ranks}, nil)
		require.NoError(t, err)
		return r.Time
	}
	// Four messages of 100 bytes leave each host, one after another or two at a time.
	together := exchange(&Machine{Ranks: 4, PerHost: 2, Among: l})
	require.Equal(t, 4*100*10*time.Nanosecond, together)
	require.Less(t, exchange(&Machine{Ranks: 4, PerHost: 1, Among: l}), together)
}

func TestSenderOfALongMessageWaitsForItsReceiver(t *testing.T) {
	m := alone(2)
	m.Among.Rendezvous = 8
	// The offer takes o and L before the message begins.
	require.Equal(t, time.Duration(1000+100_000+1008+100_080+2016), timeOf(t, m, "linear", 8))
	require.Equal(t, time.Duration(1007+100_070+2014), timeOf(t, m, "linear", 7))
}

func TestFoldTakesTheTimeOfCombining(t *testing.T) {
	m := alone(2)
	reduce := func() time.Duration {
		r, err := Run(m, Call{Collective: "reduce", Algorithm: "binomial", Bytes: 8}, nil)
		require.NoError(t, err)
		return r.Time
	}
	before := reduce()
	m.CombinePerByte = 7
	require.Equal(t, before+8*7, reduce())
}

// TestEveryCallEndsWithLongMessages replays all algorithms with senders that wait.
func TestEveryCallEndsWithLongMessages(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 7, 8, 12} {
		for perHost := 1; perHost <= 4; perHost++ {
			m := &Machine{Ranks: ranks, PerHost: perHost, Within: link(), Among: link()}
			m.Within.Rendezvous, m.Among.Rendezvous = 1, 1
			for _, c := range Collectives() {
				for _, al := range Algorithms(m, c) {
					r, err := Run(m, Call{Collective: c, Algorithm: al, Bytes: 24 * ranks}, nil)
					require.NoError(t, err, "%s by %s", c, al)
					require.Equal(t, ranks > 1, r.Time > 0)
					require.Equal(t, ranks > 1, r.Messages > 0)
				}
			}
		}
	}
}

func TestRepeatedCallsOverlap(t *testing.T) {
	m := alone(2)
	m.PerCall = 500
	once := timeOf(t, m, "linear", 8)
	require.Equal(t, time.Duration(500+1008+100_080+2016), once)
	r, err := Run(m, Call{Collective: "broadcast", Algorithm: "linear", Bytes: 8, Repeat: 3}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 3, r.Messages)
	// The sender does not wait for the receiver: each further call adds a gap.
	require.Equal(t, once+2*(5000+8), r.Time)
}

func TestPartChoosesTheAlgorithmsOfTwoLevelCalls(t *testing.T) {
	m := &Machine{Ranks: 16, PerHost: 4, Within: link(), Among: link()}
	twoLevel := func() Result {
		r, err := Run(m, Call{Collective: "broadcast", Algorithm: "two-level", Bytes: 64}, nil)
		require.NoError(t, err)
		return r
	}
	binomial := twoLevel()
	require.EqualValues(t, 3, binomial.Among)
	asked := map[bool]bool{}
	m.Part = func(collective string, bytes int, among bool) string {
		require.Equal(t, "broadcast", collective)
		require.Equal(t, 64, bytes)
		asked[among] = true
		return "linear"
	}
	linear := twoLevel()
	require.Equal(t, map[bool]bool{false: true, true: true}, asked)
	require.Equal(t, binomial.Messages, linear.Messages)
	require.Greater(t, linear.MostMessages, binomial.MostMessages)
}

func TestReplayReportsRanksThatWaitForEachOther(t *testing.T) {
	s := newReplay(alone(2), func(ctx context.Context, r *rank) error {
		return r.Recv(ctx, 1-r.id, make([]byte, 8))
	})
	require.ErrorIs(t, s.run(), errCircle)
}

func TestReplayReportsLengthsThatDiffer(t *testing.T) {
	s := newReplay(alone(2), func(ctx context.Context, r *rank) error {
		if r.id == 0 {
			return r.Send(ctx, 1, make([]byte, 8))
		}
		return r.Recv(ctx, 0, make([]byte, 9))
	})
	require.ErrorIs(t, s.run(), errLength)
}

func TestRunRefusesWhatItCannotSimulate(t *testing.T) {
	for name, change := range map[string]func(m *Machine, c *Call){
		"no ranks":              func(m *Machine, _ *Call) { m.Ranks = 0 },
		"too many ranks":        func(m *Machine, _ *Call) { m.Ranks = MostRanks + 1 },
		"no ranks on a host":    func(m *Machine, _ *Call) { m.PerHost = 0 },
		"a negative time":       func(m *Machine, _ *Call) { m.Among.Latency = -1 },
		"an unknown algorithm":  func(_ *Machine, c *Call) { c.Algorithm = "none" },
		"an unknown collective": func(_ *Machine, c *Call) { c.Collective = "none" },
		"an odd number":         func(m *Machine, c *Call) { m.Ranks, c.Algorithm = 3, "neighbor-exchange" },
		"no hosts":              func(_ *Machine, c *Call) { c.Algorithm = "two-level" },
		"unequal blocks":        func(_ *Machine, c *Call) { c.Bytes = 3 },
		"too much scratch": func(m *Machine, c *Call) {
			m.Ranks, *c = 64, Call{Collective: "all-to-all", Algorithm: "gather-scatter", Bytes: 64 << 20}
		},
		"too many bytes": func(_ *Machine, c *Call) { c.Bytes = MostBytes + 2 },
		"negative bytes": func(_ *Machine, c *Call) { c.Bytes = -2 },
	} {
		m, c := alone(2), Call{Collective: "all-gather", Algorithm: "ring", Bytes: 2}
		_, err := Run(m, c, nil)
		require.NoError(t, err)
		change(m, &c)
		_, err = Run(m, c, nil)
		require.ErrorIs(t, err, ErrMachine, name)
	}
}

// TestHundredThousandRanksBroadcast replays a call in which no rank sends more than log2(n)
// messages.
func TestHundredThousandRanksBroadcast(t *testing.T) {
	const ranks = 100_000
	r, err := Run(alone(ranks), Call{Collective: "broadcast", Algorithm: "binomial", Bytes: 8}, nil)
	require.NoError(t, err)
	require.EqualValues(t, ranks-1, r.Messages)
	require.Equal(t, 17, r.MostMessages)
	require.Zero(t, r.MostScratch)
	al, _ := message.Find(message.Broadcast, "binomial")
	rounds := al.Cost(ranks, 8, 0).Rounds
	require.GreaterOrEqual(t, r.Time, 100*time.Microsecond*time.Duration(rounds-1))
}
