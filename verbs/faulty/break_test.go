package faulty

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

// disturbed lists plans that must not change the results of errors and cuts.
var disturbed = map[string]Plan{
	"alone":         {},
	"with delays":   {Seed: 1, DelayStarts: 0.5, DelayCompletions: 0.5},
	"with reorders": {Seed: 2, Reorder: 1, DelayCompletions: 0.5},
}

// between connects two ends of one provider with the plan's faults.
func between(t *testing.T, plan Plan) (a, b *end) {
	t.Helper()
	p := New(loop.New(), plan)
	a, b = open(t, p), open(t, p)
	connect(t, a.qp, b.qp)
	return a, b
}

func TestChosenRequestFailsLikeAnyOther(t *testing.T) {
	for name, plan := range disturbed {
		for _, status := range []driver.Status{driver.RemoteAccess, driver.RemoteOperation, driver.ReceiverNotReady, driver.GeneralError} {
			t.Run(name+" "+status.String(), func(t *testing.T) {
				plan.Errors = []Error{{Target: Target{Context: 1, QP: 1}, Request: 3, Status: status}}
				a, b := between(t, plan)
				a.offer(100, 512)
				for id := range uint64(5) {
					a.set(int(id)*8, id+1)
					a.post(a.write(id+1, b, int(id)*8))
				}
				// The flushed receive completes at any time after the QP below
				// breaks.
				statuses := map[uint64]driver.Status{}
				for range 6 {
					wc := a.next()
					statuses[wc.ID] = wc.Status
				}
				require.Equal(t, map[uint64]driver.Status{1: driver.Success, 2: driver.Success, 3: status,
					4: driver.Flushed, 5: driver.Flushed, 100: driver.Flushed}, statuses)
				require.Equal(t, verbs.StateErr, a.qp.State())
				require.Zero(t, b.get(16), "the failed request took effect")
				require.Zero(t, b.get(24), "a flushed request took effect")

				b.post(b.write(7, a, 0))
				b.expect(7, driver.RetryExceeded)
				a.post(a.write(6, b, 0))
				a.expect(6, driver.Flushed)
			})
		}
	}
}

func TestFailingRequestWaitsForThoseBeforeIt(t *testing.T) {
	a, b := between(t, Plan{Errors: []Error{{Target: Target{Context: 1}, Request: 2, Status: driver.RemoteAccess}}})
	a.post(a.send(1, 0), a.write(2, b, 0)) // the SEND waits for a receive
	a.nothing(100)
	b.offer(1, 0)
	a.expect(1, driver.Success, driver.RemoteAccess)
}

func TestErrorsChooseTheirQueuePair(t *testing.T) {
	a, b := between(t, Plan{Errors: []Error{{Target: Target{Context: 1, QP: 2}, Request: 1, Status: driver.RemoteInvalid}}})
	second, far := a.newQP(), b.newQP()
	connect(t, second, far)
	a.post(a.write(1, b, 0))
	a.expect(1, driver.Success)
	b.post(b.write(1, a, 0))
	b.expect(1, driver.Success)
	_, err := second.PostSend([]driver.WorkRequest{a.write(2, b, 0)})
	require.NoError(t, err)
	a.expect(2, driver.RemoteInvalid)
	a.post(a.write(3, b, 0))
	a.expect(3, driver.Success)
}

func TestCutEndsTheConnectionOnThisSide(t *testing.T) {
	for name, plan := range disturbed {
		t.Run(name, func(t *testing.T) {
			plan.Cuts = []Cut{{Target: Target{Context: 1}, Request: 3}}
			a, b := between(t, plan)
			a.post(a.write(1, b, 0), a.write(2, b, 8))
			a.expect(1, driver.Success, driver.Success)
			a.post(a.write(3, b, 16), a.write(4, b, 24), a.read(5, b, 0, 0))
			wc := a.next()
			require.Equal(t, uint64(3), wc.ID)
			require.Equal(t, driver.RetryExceeded, wc.Status)
			require.ErrorIs(t, wc.Err, driver.ErrLost)
			a.expect(4, driver.Flushed, driver.Flushed)

			ev := a.event()
			require.Equal(t, driver.EventQPFatal, ev.Kind)
			require.Equal(t, a.qp.Num(), ev.QP)
			require.ErrorIs(t, ev.Err, driver.ErrLost)
			require.Equal(t, verbs.StateErr, a.qp.State())
			require.Empty(t, b.events, "the peer was not told")
			b.post(b.write(9, a, 0))
			b.expect(9, driver.RetryExceeded)
			require.Empty(t, a.events, "one cut, one event")
		})
	}
}

func TestCutReachesThePeer(t *testing.T) {
	a, b := between(t, Plan{Cuts: []Cut{{Target: Target{Context: 1}, Request: 1, Peer: true}}})
	b.post(b.send(7, 0)) // waits for a receive that will never be posted
	a.post(a.write(1, b, 0))
	a.expect(1, driver.RetryExceeded)
	for _, e := range []*end{a, b} {
		ev := e.event()
		require.Equal(t, driver.EventQPFatal, ev.Kind)
		require.Equal(t, e.qp.Num(), ev.QP)
		require.ErrorIs(t, ev.Err, driver.ErrLost)
		require.Equal(t, verbs.StateErr, e.qp.State())
	}
	b.expect(7, driver.RetryExceeded)
}

func TestRequestsUnderWayAtACutAreLost(t *testing.T) {
	a, b := between(t, Plan{Cuts: []Cut{{Target: Target{Context: 1}, Request: 3}}})
	a.post(a.send(1, 0), a.send(2, 0), a.write(3, b, 0)) // the SENDs wait for receives
	a.expect(1, driver.RetryExceeded, driver.Flushed, driver.Flushed)
}

func TestReconnectingAfterACutWorks(t *testing.T) {
	a, b := between(t, Plan{DelayStarts: 0.5, Cuts: []Cut{{Target: Target{Context: 1}, Request: 2, Peer: true}}})
	a.post(a.write(1, b, 0), a.write(2, b, 8), a.write(3, b, 16))
	a.expect(1, driver.Success, driver.RetryExceeded, driver.Flushed)
	a.event()
	b.event()
	for _, e := range []*end{a, b} {
		require.NoError(t, e.qp.Modify(testwatch.Context(t), verbs.StateReset, driver.Attr{}))
	}
	connect(t, a.qp, b.qp)
	for id := range uint64(20) {
		a.set(0, id)
		a.post(a.write(id, b, 0))
		a.expect(id, driver.Success)
		require.Equal(t, id, b.get(0))
	}
	require.Empty(t, a.events)
	require.Empty(t, b.events)
}

// Failures of the wrapped provider go through: the peer's end breaks while
// faulty holds requests here.
func TestHeldRequestsAreLostWithThePeer(t *testing.T) {
	a, b := pair(t, Plan{DelayStarts: 1, MaxDelay: ages, MaxPolls: 1 << 40})
	a.post(a.write(1, b, 0), a.write(2, b, 8))
	require.NoError(t, b.qp.Close())
	ev := a.event()
	require.Equal(t, driver.EventQPFatal, ev.Kind)
	require.ErrorIs(t, ev.Err, driver.ErrLost)
	a.expect(1, driver.RetryExceeded, driver.Flushed)
}

func TestModifyToErrFlushesHeldRequests(t *testing.T) {
	a, b := pair(t, Plan{DelayStarts: 1, MaxDelay: ages, MaxPolls: 1 << 40})
	a.post(a.write(1, b, 0), a.write(2, b, 8))
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateErr, driver.Attr{}))
	a.expect(1, driver.Flushed, driver.Flushed)
	require.Zero(t, b.get(0))
}

func TestResetForgetsHeldRequestsAndUnpolledCompletions(t *testing.T) {
	a, b := pair(t, Plan{Seed: 4, DelayStarts: 0.5, DelayCompletions: 0.5, MaxDelay: ages, MaxPolls: 1 << 40})
	a.offer(100, 0)
	for id := range uint64(depth) {
		a.post(a.write(id, b, 0))
	}
	for range 2 {
		require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateReset, driver.Attr{}))
		a.nothing(100)
	}
}

func TestDrainedQueueStartsNothingUntilItGoesOn(t *testing.T) {
	a, b := pair(t, Plan{DelayCompletions: 0.5})
	a.set(0, 1)
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateSQD, driver.Attr{}))
	a.post(a.write(1, b, 0))
	a.nothing(100)
	require.Zero(t, b.get(0))
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateRTS, driver.Attr{}))
	a.expect(1, driver.Success)
	require.Equal(t, uint64(1), b.get(0))
}
