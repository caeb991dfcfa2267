package verbstest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// orderCases lists the promises about the order in which a target sees requests.
func orderCases() []testCase {
	return []testCase{
		{"WritesToOneWordNeverGoBack", writesInOrder},
		{"AlignedWordsAreNeverTorn", neverTorn},
		{"DataIsVisibleBeforeItsFlag", dataBeforeFlag},
		{"LastWordOfAShortWriteIsWrittenLast", lastWordLast},
		{"DataIsVisibleBeforeItsFlagThoughItWasCanceled", canceledDataBeforeFlag},
		{"DataIsVisibleBeforeTheSendBehindIt", dataBeforeSend},
		{"ReadCompletesAfterEarlierWritesWereApplied", readAfterWrites},
		{"AtomicCompletesAfterEarlierWritesWereApplied", atomicAfterWrites},
		{"WriteCompletesWhenAppliedWhereTheDeviceSaysSo", appliedWrites},
		{"FencedRequestSeesEarlierReadsDone", fence},
		{"CompletionsOfOneQueueComeInOrder", completionsInOrder},
	}
}

// watch runs ready in a goroutine of s's program, which waits on s's bell, while
// post runs here on behalf of its peer.
func (s *side) watch(peer *side, ready func() bool, post func()) {
	s.t.Helper()
	var g errgroup.Group
	ctx := testwatch.Context(s.t, s.posts.Load, peer.posts.Load)
	g.Go(func() error { return s.hear(ctx, ready) })
	post()
	peer.tell(s)
	require.NoError(s.t, g.Wait())
}

// writesInOrder writes growing numbers to one word, which the target watches. The target may miss
// numbers and must never see an earlier one.
func writesInOrder(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const rounds = 500
	word, last := word64(b.bytes(64, 8)), uint64(0)
	var broken error
	ready := func() bool {
		v := word.Load()
		if v < last {
			broken = fmt.Errorf("%d after %d", v, last)
		}
		last = v
		return v == rounds || broken != nil
	}
	b.watch(a, ready, func() {
		for i := range uint64(rounds) {
			slot := int(i%16) * 8
			binary.NativeEndian.PutUint64(a.bytes(slot, 8), i+1)
			wr := verbs.WorkRequest{ID: i, Op: verbs.OpWrite, Local: segs(a.at(slot, 8)), Remote: b.mr.Remote(64)}
			if i%16 == 15 || i == rounds-1 { // the sources are free again after this one
				a.do(wr)
			} else {
				a.post(wr)
			}
		}
	})
	require.NoError(t, broken)
}

// neverTorn writes and reads words that their owner accesses with atomics: both
// sides see only one of two values.
func neverTorn(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	written, stored, last := word64(b.bytes(64, 8)), word64(b.bytes(128, 8)), word64(b.bytes(128+driver.WholeRead-8, 8))
	whole := func(v uint64) bool { return v == 0 || v == ^uint64(0) }
	ctx, stop := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error {
		for v := uint64(0); ctx.Err() == nil; v = ^v {
			stored.Store(v)
			last.Store(v)
			if seen := written.Load(); !whole(seen) {
				return fmt.Errorf("the owner saw %#x", seen)
			}
			goruntime.Gosched()
		}
		return nil
	})
	for i := range h.rounds(150) {
		put64(a.bytes(0, 8), -uint64(i%2))
		a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)})
		a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(8, 8)), Remote: b.mr.Remote(128)})
		require.True(t, whole(get64(a.bytes(8, 8))), "read %#x", get64(a.bytes(8, 8)))
		a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(1024, driver.WholeRead)), Remote: b.mr.Remote(128)})
		for _, at := range []int{1024, 1024 + driver.WholeRead - 8} {
			require.True(t, whole(get64(a.bytes(at, 8))), "read %#x among others", get64(a.bytes(at, 8)))
		}
	}
	stop()
	require.NoError(t, g.Wait())
}

// dataBeforeFlag writes blocks, each with a flag behind it. The target watches the flags and
// compares the block as soon as it sees one.
func dataBeforeFlag(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const rounds, size, flags = 100, 256, 32 << 10
	for i := range rounds {
		fill(a.bytes(i*size, size), i)
		binary.NativeEndian.PutUint64(a.bytes(flags+i*8, 8), 1)
	}
	var broken error
	seen := 0
	ready := func() bool {
		for seen < rounds && word64(b.bytes(flags+seen*8, 8)).Load() == 1 {
			if string(b.bytes(seen*size, size)) != string(pattern(size, seen)) {
				broken = errors.Join(broken, fmt.Errorf("flag %d was seen without its data", seen))
			}
			seen++
		}
		return seen == rounds
	}
	b.watch(a, ready, func() {
		for i := range rounds {
			a.post(
				verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(i*size, size)), Remote: b.mr.Remote(i * size)},
				verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Signaled,
					Local: segs(a.at(flags+i*8, 8)), Remote: b.mr.Remote(flags + i*8)})
		}
		for range rounds {
			require.Equal(t, verbs.Success, a.sent().Status)
		}
	})
	require.NoError(t, broken)
}

// lastWordLast posts short writes of all lengths, many at a time, to a reader that looks
// at the last word of each. If the CPU writes them into Go's memory, the race detector
// assumes another order, which hardware seldom shows.
func lastWordLast(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	if !a.ctx.Info().Writes.Whole {
		t.Skip("the device does not say so")
	}
	const rounds, size = 400, driver.WholeWrite
	length := func(i int) int { return 8 + i*8%size }
	for i := range rounds {
		fill(a.bytes(i*size, length(i)-8), i)
		put64(a.bytes(i*size+length(i)-8, 8), uint64(i+1))
	}
	var broken error
	seen := 0
	ready := func() bool {
		for seen < rounds && word64(b.bytes(seen*size+length(seen)-8, 8)).Load() == uint64(seen+1) {
			if n := length(seen) - 8; string(b.bytes(seen*size, n)) != string(pattern(n, seen)) {
				broken = errors.Join(broken, fmt.Errorf("the last of %d bytes was seen without the others", n+8))
			}
			seen++
		}
		return seen == rounds
	}
	b.watch(a, ready, func() {
		for i := range rounds {
			wr := verbs.WorkRequest{ID: uint64(i), Op: verbs.OpWrite, Local: segs(a.at(i*size, length(i))), Remote: b.mr.Remote(i * size)}
			if i%16 == 15 || i == rounds-1 {
				a.do(wr)
			} else {
				a.post(wr)
			}
		}
	})
	require.NoError(t, broken)
}

// canceledDataBeforeFlag cancels a WRITE that waits, with its flag, behind a SEND
// for which the peer has posted no receive yet.
func canceledDataBeforeFlag(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const size, flag = 8 << 10, 32 << 10
	fill(a.bytes(0, size), 5)
	binary.NativeEndian.PutUint64(a.bytes(flag, 8), 1)
	a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(flag, 8))},
		verbs.WorkRequest{ID: 2, Op: verbs.OpWrite, Flags: verbs.Signaled | verbs.Announced, Local: segs(a.at(0, size)), Remote: b.mr.Remote(0)},
		verbs.WorkRequest{ID: 3, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(flag, 8)), Remote: b.mr.Remote(flag)})
	if !a.qp.Cancel(2) {
		t.Skip("the provider cannot cancel one request")
	}
	clear(a.bytes(0, size)) // the memory is ours again
	b.watch(a, func() bool { return word64(b.bytes(flag, 8)).Load() == 1 }, func() {
		b.postRecv(verbs.RecvRequest{ID: 9, Local: segs(b.at(flag+64, 8))})
		statuses := map[uint64]verbs.Status{}
		for range 3 {
			wc := a.sent()
			statuses[wc.ID] = wc.Status
		}
		require.Equal(t, map[uint64]verbs.Status{1: verbs.Success, 2: verbs.Canceled, 3: verbs.Success}, statuses)
	})
	require.Equal(t, pattern(size, 5), b.bytes(0, size))
}

// dataBeforeSend has the completion of a receive be the flag of a WRITE ahead of it.
func dataBeforeSend(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range 50 {
		n := 1 + i*97
		fill(a.bytes(0, n), i)
		b.postRecv(verbs.RecvRequest{ID: uint64(i), Local: segs(b.at(40000, 8))})
		a.post(
			verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, n)), Remote: b.mr.Remote(1)},
			verbs.WorkRequest{Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 1))})
		require.Equal(t, verbs.Success, b.received().Status)
		require.Equal(t, pattern(n, i), b.bytes(1, n))
		require.Equal(t, verbs.Success, a.sent().Status)
	}
}

// readAfterWrites has a READ of other memory follow a WRITE. Its completion shows that the WRITE
// was applied.
func readAfterWrites(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range 30 {
		fill(a.bytes(0, 10000), i)
		a.post(
			verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 10000)), Remote: b.mr.Remote(0)},
			verbs.WorkRequest{Op: verbs.OpRead, Flags: verbs.Signaled, Local: segs(a.at(20000, 1)), Remote: b.mr.Remote(50000)})
		require.Equal(t, verbs.Success, a.sent().Status)
		require.Equal(t, pattern(10000, i), b.bytes(0, 10000))
	}
}

// atomicAfterWrites has an atomic of another word follow a WRITE. Its completion shows that the
// WRITE was applied.
func atomicAfterWrites(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range 30 {
		fill(a.bytes(0, 10000), i)
		a.post(
			verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 10000)), Remote: b.mr.Remote(0)},
			verbs.WorkRequest{Op: verbs.OpFetchAdd, Flags: verbs.Signaled, Operand: 1,
				Local: segs(a.at(20000, 8)), Remote: b.mr.Remote(50000)})
		require.Equal(t, verbs.Success, a.sent().Status)
		require.Equal(t, pattern(10000, i), b.bytes(0, 10000))
	}
}

// appliedWrites looks at the target's memory as soon as a WRITE has completed. Only some devices
// promise that the data is there.
func appliedWrites(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	if !a.ctx.Info().Writes.Applied {
		t.Skip("a completed WRITE may still be on its way into the target's memory")
	}
	for i := range 30 {
		fill(a.bytes(0, 20000), i)
		a.post(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 10000)), Remote: b.mr.Remote(0)})
		a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(10000, 10000)), Remote: b.mr.Remote(10000)})
		require.Equal(t, pattern(20000, i), b.bytes(0, 20000))
	}
}

// fence reads a block and sends it on without waiting in between.
func fence(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range 30 {
		fill(b.bytes(0, 9000), i)
		clear(a.bytes(0, 9000))
		a.post(
			verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(0, 9000)), Remote: b.mr.Remote(0)},
			verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Fence | verbs.Signaled,
				Local: segs(a.at(0, 9000)), Remote: b.mr.Remote(20000)})
		require.Equal(t, verbs.Success, a.sent().Status)
		a.flush(b)
		require.Equal(t, pattern(9000, i), b.bytes(20000, 9000))
	}
}

// completionsInOrder mixes requests that need a response with ones that do not. A goroutine takes
// completions while others are posted.
func completionsInOrder(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	var g errgroup.Group
	g.Go(func() error {
		for want := range uint64(300) {
			wc, err := next(a.scq)
			if err != nil || wc.Status != verbs.Success || wc.ID != want {
				return fmt.Errorf("completion %d: got %+v: %w", want, wc, errors.Join(err, context.Cause(t.Context())))
			}
		}
		return nil
	})
	for i := range uint64(300) {
		wr := verbs.WorkRequest{ID: i, Flags: verbs.Signaled, Local: segs(a.at(8*int(i), 8)), Remote: b.mr.Remote(0)}
		wr.Op = []verbs.Opcode{verbs.OpWrite, verbs.OpRead, verbs.OpFetchAdd}[i%3]
		postPatiently(t, a.qp, wr)
	}
	require.NoError(t, g.Wait())
}
