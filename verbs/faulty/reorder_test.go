package faulty

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// passing returns two ends with a plan that lets everything pass. READs, WRITEs
// and atomics of the first words have succeeded between them.
func passing(t *testing.T, seed uint64) (a, b *end) {
	a, b = pair(t, Plan{Seed: seed, Reorder: 1, MaxDelay: ages, MaxPolls: 50})
	a.post(a.write(1, b, 0), a.read(2, b, 0, 0), a.add(3, b, 8), a.write(4, b, 8), a.read(5, b, 0, 8))
	a.expect(1, make([]driver.Status, 5)...)
	b.set(0, 1)
	b.set(8, 1)
	return a, b
}

// add returns a signaled FETCH_ADD of 1 to the peer's word; the old value goes
// to the same offset.
func (e *end) add(id uint64, peer *end, offset int) driver.WorkRequest {
	return driver.WorkRequest{ID: id, Op: driver.OpFetchAdd, Flags: driver.Signaled, Operand: 1,
		Local: e.at(offset, 8), Remote: peer.mr.Remote(offset)}
}

const seeds = 20

func TestWritePassesAHeldRead(t *testing.T) {
	passed := 0
	for seed := range uint64(seeds) {
		a, b := passing(t, seed)
		a.set(0, 2)
		a.post(a.read(10, b, 64, 0), a.write(11, b, 0))
		a.expect(10, driver.Success, driver.Success)
		require.Contains(t, []uint64{1, 2}, a.get(64))
		require.Equal(t, uint64(2), b.get(0))
		if a.get(64) == 2 {
			passed++
		}
	}
	require.Positive(t, passed)
}

func TestNoFencedRequestPassesHeldRead(t *testing.T) {
	for seed := range uint64(seeds) {
		a, b := passing(t, seed)
		a.set(0, 2)
		fenced := a.write(11, b, 0)
		fenced.Flags |= driver.Fence
		behind := a.write(12, b, 0)
		a.post(a.read(10, b, 64, 0), fenced, behind)
		a.expect(10, driver.Success, driver.Success, driver.Success)
		require.Equal(t, uint64(1), a.get(64))
	}
}

func TestReadPassesAHeldAtomicButWriteDoesNot(t *testing.T) {
	passed := 0
	for seed := range uint64(seeds) {
		a, b := passing(t, seed)
		a.post(a.add(10, b, 8), a.read(11, b, 64, 8))
		a.expect(10, driver.Success, driver.Success)
		require.Equal(t, uint64(1), a.get(8), "the atomic's result")
		if a.get(64) == 1 {
			passed++
		}

		a.set(72, 100)
		write := a.write(13, b, 72)
		write.Remote = b.mr.Remote(8)
		a.post(a.add(12, b, 8), write)
		a.expect(12, driver.Success, driver.Success)
		require.Equal(t, uint64(100), b.get(8), "the WRITE came after the atomic")
	}
	require.Positive(t, passed)
}

func TestWritesAndSendsNeverPassEachOther(t *testing.T) {
	a, b := pair(t, Plan{Reorder: 1, DelayStarts: 0.5, DelayCompletions: 0.5})
	for i := range uint64(200) {
		b.offer(i, 64)
		a.set(0, i)
		a.post(a.write(0, b, 0), a.send(1, 0))
		require.Equal(t, i, b.next().ID)
		require.Equal(t, i, b.get(0), "the SEND arrived before the WRITE")
		a.expect(0, driver.Success, driver.Success)
	}
}

func TestRequestThatMayFailPassesNothing(t *testing.T) {
	for seed := range uint64(seeds) {
		a, b := passing(t, seed)
		outside := a.write(11, b, 0)
		outside.Remote = b.mr.Remote(0).Add(memory)
		a.post(a.read(10, b, 64, 0), outside, a.write(12, b, 0))
		a.expect(10, driver.Success, driver.RemoteAccess, driver.Flushed)
		require.Equal(t, uint64(1), b.get(0), "a flushed WRITE took effect")
	}
}

// Completions of two queue pairs that end at the same poll come in either
// order. Those of one queue pair keep their order.
func TestCompletionsOfDifferentQueuePairsAreShuffled(t *testing.T) {
	firsts := map[uint32]int{}
	a, b := pair(t, Plan{Reorder: 1, Stall: Stall{Every: 2, For: 100 * time.Microsecond}})
	other, far := a.newQP(), b.newQP()
	connect(t, other, far)
	for range 100 {
		a.post(a.write(1, b, 0), a.write(2, b, 0))
		n, err := other.PostSend([]driver.WorkRequest{a.write(1, b, 8), a.write(2, b, 8)})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		last := map[uint32]uint64{}
		for i := range 4 {
			wc := a.next()
			require.Equal(t, last[wc.QP]+1, wc.ID)
			last[wc.QP] = wc.ID
			if i == 0 {
				firsts[wc.QP]++
			}
		}
	}
	require.Len(t, firsts, 2)
}
