package verbstest

import (
	"errors"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// lifetimeCases lists the promises about the end of objects, of their users and of peers.
func lifetimeCases() []testCase {
	return []testCase{
		{"ObjectsInUseRefuseToClose", inUse},
		{"ClosedObjectsRefuseTypedAndForGood", closedObjects},
		{"ClosedRegionsKeyIsDead", closedRegion},
		{"KeysAreNeverUsedAgain", freshKeys},
		{"CloseWhileOthersPost", closeWhilePosting},
		{"DeregisterWhileThePeerWrites", deregisterInFlight},
		{"PeerThatDiesEndsWhatIsOutstanding", peerDies},
		{"PeerThatDiesAmidTransfersEndsEachOnce", diesAmidTransfers},
		{"ErrAmidTransfersEndsEachOnce", errAmidTransfers},
		{"RequestsToADeadPeerFail", postToDead},
		{"ClosingEndsAWait", closeEndsWait},
	}
}

// inUse closes objects in the wrong order. Each error names the objects that still use the one to
// be closed.
func inUse(t *testing.T, h Harness) {
	a, _ := newPair(t, h)
	var busy *verbs.InUseError
	require.ErrorAs(t, a.pd.Close(), &busy)
	require.Equal(t, verbs.InUseError{Object: "PD", MRs: 1, QPs: 1}, *busy)
	require.ErrorAs(t, a.scq.Close(), &busy)
	require.Equal(t, "CQ", busy.Object)
	require.ErrorIs(t, a.rcq.Close(), verbs.ErrInUse)
	require.NoError(t, a.qp.Close())
	require.NoError(t, a.scq.Close())
	require.NoError(t, a.rcq.Close())
	require.ErrorIs(t, a.pd.Close(), verbs.ErrInUse)
	require.NoError(t, a.mr.Close())
	require.NoError(t, a.pd.Close())
}

// closedObjects closes each object twice, from the QP up to the context, and then uses it.
func closedObjects(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	write := []verbs.WorkRequest{{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}}
	for range 2 {
		require.NoError(t, a.qp.Close(), "closing is idempotent")
	}
	_, err := a.qp.PostSend(write)
	require.ErrorIs(t, err, driver.ErrClosed)
	_, err = a.qp.PostRecv([]verbs.RecvRequest{{}})
	require.ErrorIs(t, err, driver.ErrClosed)
	require.ErrorIs(t, a.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}), driver.ErrClosed)
	for range 2 {
		require.NoError(t, a.mr.Close())
		require.NoError(t, a.scq.Close())
		require.NoError(t, a.pd.Close())
		require.NoError(t, a.ctx.Close())
	}
	_, err = a.ctx.AllocPD()
	require.ErrorIs(t, err, driver.ErrClosed)
	_, err = a.ctx.CreateCQ(testwatch.Context(t), 1)
	require.ErrorIs(t, err, driver.ErrClosed)
	_, err = a.pd.RegMR(testwatch.Context(t), h.NewMemory(t, 4096), verbs.AllAccess)
	require.ErrorIs(t, err, driver.ErrClosed)
}

// closedRegion registers the same memory again; the old key must not reach it.
func closedRegion(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	mem := h.NewMemory(t, 4096)
	mr, err := b.pd.RegMR(testwatch.Context(t), mem, verbs.AllAccess)
	require.NoError(t, err)
	to := mr.Remote(0)
	a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: to})
	require.NoError(t, mr.Close())
	successor, err := b.pd.RegMR(testwatch.Context(t), mem, verbs.AllAccess)
	require.NoError(t, err)
	require.NotEqual(t, to.RKey, successor.RKey())
	a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(fillSegment(a.at(0, 8))), Remote: to})
	require.Equal(t, verbs.RemoteAccess, a.sent().Status)
	require.True(t, zero(mem.Bytes))
}

// freshKeys registers the same memory again and again. A key that came back would open the memory
// to peers of an earlier registration.
func freshKeys(t *testing.T, h Harness) {
	a, _ := newStrangers(t, h)
	mem, seen := h.NewMemory(t, 4096), map[verbs.Key]bool{{}: true}
	for range 200 {
		mr, err := a.pd.RegMR(testwatch.Context(t), mem, verbs.AllAccess)
		require.NoError(t, err)
		require.False(t, seen[mr.RKey()], "key %v", mr.RKey())
		require.NotZero(t, mr.LKey())
		seen[mr.RKey()] = true
		require.NoError(t, mr.Close())
	}
}

// closeWhilePosting closes a QP under three goroutines that post to it. Each post is taken whole,
// or refused with ErrClosed or ErrQueueFull.
func closeWhilePosting(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	var posts atomic.Int64
	var g errgroup.Group
	for range 3 {
		g.Go(func() error {
			wr := []verbs.WorkRequest{{Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 64)), Remote: b.mr.Remote(0)}}
			for {
				_, err := a.qp.PostSend(wr)
				if errors.Is(err, driver.ErrClosed) {
					return nil
				}
				if err != nil && !errors.Is(err, driver.ErrQueueFull) {
					return err
				}
				posts.Add(1)
				goruntime.Gosched()
			}
		})
	}
	g.Go(func() error {
		for range 200 {
			if _, err := next(a.scq); err != nil {
				return err
			}
		}
		return a.qp.Close()
	})
	require.NoError(t, g.Wait())
	require.Positive(t, posts.Load())
	require.NoError(t, a.scq.Close())
}

// deregisterInFlight: once Close has returned, no byte of the region changes any
// more.
func deregisterInFlight(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const size = 256 << 10
	mr, source := b.newMR(size, verbs.AllAccess), a.newMR(size, verbs.AllAccess)
	fill(source.Bytes(), 1)
	to, local := mr.Remote(0), segs(segment(t, source, 0, size))
	var started atomic.Int64
	var g errgroup.Group
	g.Go(func() error {
		for {
			err := doOn(a.qp, a.scq, verbs.WorkRequest{Op: verbs.OpWrite, Local: local, Remote: to})
			started.Add(1)
			b.bell.Ring() // the device need not
			if err != nil {
				return expect(verbs.RemoteAccess, err) // the key died
			}
		}
	})
	require.NoError(t, b.bell.Wait(testwatch.Context(t), func() bool { goruntime.Gosched(); return started.Load() > 3 }))
	require.NoError(t, mr.Close())
	clear(mr.Bytes())
	require.NoError(t, g.Wait())
	require.True(t, zero(mr.Bytes()), "the peer wrote after deregistration")
}

// peerDies closes the peer's context, which ends as a process that exits does. Sends and receives
// under way complete with errors, each once and in order.
func peerDies(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const sends = 6
	for i := range uint64(sends) {
		a.post(verbs.WorkRequest{ID: i, Op: verbs.OpSend, Local: segs(a.at(0, 8))})
		a.postRecv(verbs.RecvRequest{ID: 100 + i})
	}
	require.NoError(t, b.ctx.Close())
	for i := range uint64(sends) {
		wc := a.sent()
		require.Equal(t, i, wc.ID)
		require.NotEqual(t, verbs.Success, wc.Status)
		wc = a.received()
		require.Equal(t, 100+i, wc.ID)
		require.Equal(t, verbs.Flushed, wc.Status)
	}
	require.Equal(t, verbs.StateErr, a.qp.State())
}

// bigReads posts READs of a megabyte each, into memory of their own.
func bigReads(t *testing.T, a, b *side) (from *verbs.MR, into *verbs.MR) {
	t.Helper()
	const reads, size = 8, 1 << 20
	from, into = b.newMR(size, verbs.AllAccess), a.newMR(reads*size, verbs.AllAccess)
	fill(from.Bytes(), 1)
	for i := range reads {
		a.post(verbs.WorkRequest{ID: uint64(i), Op: verbs.OpRead, Flags: verbs.Signaled,
			Local: segs(segment(t, into, i*size, size)), Remote: from.Remote(0)})
	}
	return from, into
}

// endOfBigReads wants a completion for each, in order: successes, one cause,
// and the rest flushed. Then the memory is the caller's.
func endOfBigReads(t *testing.T, a *side, from, into *verbs.MR) {
	t.Helper()
	size, healthy := len(from.Bytes()), true
	for i := range 8 {
		wc := a.sent()
		require.Equal(t, uint64(i), wc.ID)
		switch {
		case wc.Status == verbs.Success:
			require.True(t, healthy, "request %d succeeded after a failure", i)
			require.True(t, string(from.Bytes()) == string(into.Bytes()[i*size:(i+1)*size]), "request %d brought something else", i)
		case !healthy:
			require.Equal(t, verbs.Flushed, wc.Status)
		default:
			healthy = false
		}
	}
	n, err := a.scq.Poll(make([]verbs.Completion, 1))
	require.NoError(t, err)
	require.Zero(t, n, "one completion each")
	clear(into.Bytes())
	for range 20 { // the rest of the transfer has time to arrive
		time.Sleep(time.Millisecond)
		require.True(t, zero(into.Bytes()), "memory changed after its request had ended")
	}
}

func diesAmidTransfers(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	from, into := bigReads(t, a, b)
	require.NoError(t, b.ctx.Close())
	endOfBigReads(t, a, from, into)
}

// errAmidTransfers moves a QP to ERR while large reads are under way. Each read ends once, and the
// QP works again behind a reset.
func errAmidTransfers(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	from, into := bigReads(t, a, b)
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateErr, verbs.Attr{}))
	endOfBigReads(t, a, from, into)
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
	require.NoError(t, b.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
	connect(t, a.qp, b.qp)
	a.flush(b)
}

// postToDead posts each kind of request after the peer's end. The QP may know of the end already,
// or learn of it by the request.
func postToDead(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	to := b.mr.Remote(0)
	require.NoError(t, b.ctx.Close())
	for _, op := range []verbs.Opcode{verbs.OpRead, verbs.OpWrite, verbs.OpFetchAdd, verbs.OpSend} {
		a.post(verbs.WorkRequest{ID: uint64(op), Op: op, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: to})
		wc := a.sent()
		require.Equal(t, uint64(op), wc.ID)
		require.NotEqual(t, verbs.Success, wc.Status)
		require.Equal(t, verbs.StateErr, a.qp.State())
	}
}

// closeEndsWait closes a context under a goroutine that waits for a completion.
func closeEndsWait(t *testing.T, h Harness) {
	a, _ := newPair(t, h)
	var g errgroup.Group
	g.Go(func() error {
		_, err := next(a.rcq)
		return err
	})
	goruntime.Gosched()
	require.NoError(t, a.ctx.Close())
	require.ErrorIs(t, g.Wait(), driver.ErrClosed)
}
