package faulty

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestHeldRequestStartsWithoutPolls(t *testing.T) {
	a, b := pair(t, Plan{DelayStarts: 1, MaxDelay: 5 * time.Millisecond, MaxPolls: 1 << 30})
	for id := range uint64(8) {
		b.offer(id, int(id)*8)
	}
	for id := range uint64(8) {
		a.set(0, id)
		wr := a.send(id, 0)
		wr.Flags |= driver.Inline
		a.post(wr)
	}
	for id := range uint64(8) { // only b polls
		require.Equal(t, id, b.next().ID)
		require.Equal(t, id, b.get(int(id)*8), "inline memory was not copied by PostSend")
	}
	a.expect(0, make([]driver.Status, 8)...)
}

func TestHeldCompletionWakesAWaiterOnceItIsDue(t *testing.T) {
	a, b := pair(t, Plan{DelayCompletions: 1, MaxDelay: 5 * time.Millisecond, MaxPolls: 1 << 30})
	for id := range uint64(20) {
		a.post(a.write(id, b, 8))
		require.NoError(t, a.cq.Wait(testwatch.Context(t)))
		var wc [2]driver.Completion
		n, err := a.cq.Poll(wc[:])
		require.NoError(t, err)
		require.Equal(t, 1, n, "Wait returned though nothing could be polled")
		require.Equal(t, id, wc[0].ID)
	}
}

func TestHoldsEndAfterEnoughPolls(t *testing.T) {
	const polls = 10
	a, b := pair(t, Plan{Seed: 3, DelayStarts: 1, DelayCompletions: 1, MaxDelay: ages, MaxPolls: polls})
	b.offer(0, 0)
	a.post(a.write(1, b, 8), a.send(2, 0))
	var got []uint64
	var wc [4]driver.Completion
	for range 2*polls + 2 { // a start and a completion, with the polls that end each
		n, err := a.cq.Poll(wc[:])
		require.NoError(t, err)
		for _, c := range wc[:n] {
			got = append(got, c.ID)
		}
	}
	require.Equal(t, []uint64{1, 2}, got)
}

func TestHeldCompletionsOfReceivesKeepTheirOrder(t *testing.T) {
	b, a := pair(t, Plan{DelayCompletions: 0.5})
	for round := range uint64(10) {
		for id := range uint64(depth) {
			b.offer(round*depth+id, 0)
		}
		for id := range uint64(depth) {
			a.post(a.send(id, 0))
		}
		for id := range uint64(depth) {
			wc := b.next()
			require.Equal(t, round*depth+id, wc.ID)
			require.Equal(t, driver.OpRecv, wc.Op)
			require.Equal(t, 8, wc.Bytes)
		}
		a.expect(0, make([]driver.Status, depth)...)
	}
}

func TestUnsignaledRequestsCompleteSilently(t *testing.T) {
	a, b := pair(t, Plan{DelayStarts: 0.5, DelayCompletions: 0.5})
	for id := range uint64(200) {
		wr := a.write(id, b, 8)
		if id%8 != 7 {
			wr.Flags = 0
		}
		a.post(wr)
		if id%8 == 7 {
			require.Equal(t, id, a.next().ID)
		}
	}
	a.nothing(100)
}

// drawn returns the faults that a plan draws for the first requests of a queue
// pair.
func drawn(p Plan, context, qp int) (all []delay) {
	p.setDefaults()
	dice := p.dice(context, qp, streamRequest)
	for range 100 {
		all = append(all, p.delay(dice, p.DelayStarts), p.delay(dice, p.DelayCompletions))
	}
	return all
}

func TestSameSeedDrawsTheSameFaults(t *testing.T) {
	plan := Plan{Seed: 1, DelayStarts: 0.5, DelayCompletions: 0.5}
	require.Equal(t, drawn(plan, 1, 2), drawn(plan, 1, 2))
	require.NotEqual(t, drawn(plan, 1, 2), drawn(plan, 1, 3), "another QP")
	require.NotEqual(t, drawn(plan, 1, 2), drawn(plan, 2, 2), "another context")
	other := plan
	other.Seed = 2
	require.NotEqual(t, drawn(plan, 1, 2), drawn(other, 1, 2), "another seed")
}

// Each trial records which of its posts faulty refuses, and replays alike.
func TestSameSeedRefusesTheSamePosts(t *testing.T) {
	trial := func(seed uint64) (taken []int) {
		a, b := pair(t, Plan{Seed: seed, QueueFull: 0.3, PartialPosts: 0.5, DelayCompletions: 1, MaxDelay: ages, MaxPolls: 3})
		for range 40 {
			n, _ := a.qp.PostSend([]driver.WorkRequest{a.write(1, b, 8), a.write(2, b, 8), a.write(3, b, 8)})
			taken = append(taken, n)
			var wc [depth]driver.Completion
			for range 5 {
				_, err := a.cq.Poll(wc[:])
				require.NoError(t, err)
			}
		}
		return taken
	}
	require.Equal(t, trial(5), trial(5))
	require.NotEqual(t, trial(5), trial(6))
}
