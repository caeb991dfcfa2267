package verbstest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// stateCases lists the promises about states of a QP.
func stateCases() []testCase {
	return []testCase{
		{"StatesAreReachedInOrderOnly", illegalTransitions},
		{"PostsNeedTheirState", postsByState},
		{"ErrFlushesWhatIsOutstanding", errFlushes},
		{"PostsInErrAreFlushed", postsInErr},
		{"DrainedQueueTakesPostsAndStartsThemInRTS", drained},
		{"ResetForgetsWhatWasPosted", resetForgets},
		{"ResetFreesBothQueues", resetFrees},
		{"ResetAndConnectHealAnError", reconnect},
		{"RequestsWaitForAPeerThatConnectsLater", connectLater},
		{"BothEndsHearOnceThatTheOtherHasConnected", established},
		{"AddressOfNobodyIsRefused", badAddress},
	}
}

// illegalTransitions tries all transitions from RESET, INIT and ERR, which need no peer. A refused
// one leaves the state as it was.
func illegalTransitions(t *testing.T, h Harness) {
	_, b := newStrangers(t, h)
	all := []verbs.State{verbs.StateReset, verbs.StateInit, verbs.StateRTR, verbs.StateRTS, verbs.StateSQD, verbs.StateErr}
	legal := map[verbs.State][]verbs.State{
		verbs.StateReset: {verbs.StateReset, verbs.StateInit, verbs.StateErr},
		verbs.StateInit:  {verbs.StateReset, verbs.StateInit, verbs.StateRTR, verbs.StateErr},
		verbs.StateErr:   {verbs.StateReset, verbs.StateErr},
	}
	for from, to := range legal {
		for _, state := range all {
			qp := b.newQP()
			require.Equal(t, verbs.StateReset, qp.State())
			if from != verbs.StateReset {
				require.NoError(t, qp.Modify(testwatch.Context(t), from, verbs.Attr{}))
			}
			err := qp.Modify(testwatch.Context(t), state, verbs.Attr{})
			switch {
			case from == verbs.StateInit && state == verbs.StateRTR:
				require.ErrorIs(t, err, driver.ErrInvalid, "without a peer")
			case contains(to, state):
				require.NoError(t, err, "%v to %v", from, state)
				require.Equal(t, state, qp.State())
			default:
				require.ErrorIs(t, err, driver.ErrState, "%v to %v", from, state)
				require.Equal(t, from, qp.State())
			}
			require.NoError(t, qp.Close())
		}
	}
	require.ErrorIs(t, b.qp.Modify(testwatch.Context(t), verbs.State(42), verbs.Attr{}), driver.ErrInvalid)
}

func contains(list []verbs.State, s verbs.State) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// postsByState posts before the QP may take requests: receives from INIT on, sends from RTS on.
func postsByState(t *testing.T, h Harness) {
	a, b := newStrangers(t, h)
	send := []verbs.WorkRequest{{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}}
	recv := []verbs.RecvRequest{{Local: segs(a.at(0, 8))}}
	_, err := a.qp.PostRecv(recv)
	require.ErrorIs(t, err, driver.ErrState, "receive in RESET")
	_, err = a.qp.PostSend(send)
	require.ErrorIs(t, err, driver.ErrState, "send in RESET")
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateInit, verbs.Attr{}))
	_, err = a.qp.PostSend(send)
	require.ErrorIs(t, err, driver.ErrState, "send in INIT")
	connect(t, a.qp, b.qp)
	require.Equal(t, verbs.StateRTS, a.qp.State())
	a.postRecv(recv...)
}

// errFlushes moves a QP to ERR while sends wait for receives. Unsignaled requests complete, too,
// and all in order.
func errFlushes(t *testing.T, h Harness) {
	a, _ := newPair(t, h)
	for i := range uint64(4) {
		wr := verbs.WorkRequest{ID: i, Op: verbs.OpSend, Local: segs(a.at(0, 8))}
		if i%2 == 0 {
			wr.Flags = verbs.Signaled
		}
		a.post(wr)
		a.postRecv(verbs.RecvRequest{ID: 10 + i, Local: segs(a.at(8, 8))})
	}
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateErr, verbs.Attr{}))
	require.Equal(t, verbs.StateErr, a.qp.State())
	for i := range uint64(4) {
		wc := a.sent()
		require.Equal(t, i, wc.ID)
		require.Equal(t, verbs.Flushed, wc.Status)
		wc = a.received()
		require.Equal(t, 10+i, wc.ID)
		require.Equal(t, verbs.Flushed, wc.Status)
	}
}

// postsInErr posts more requests than the queue holds: each completes at once, as flushed.
func postsInErr(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateErr, verbs.Attr{}))
	for i := range uint64(40) {
		a.post(verbs.WorkRequest{ID: i, Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
		wc := a.sent()
		require.Equal(t, i, wc.ID)
		require.Equal(t, verbs.Flushed, wc.Status)
		require.Equal(t, a.qp.Num(), wc.QP)
		a.postRecv(verbs.RecvRequest{ID: i})
		require.Equal(t, verbs.Flushed, a.received().Status)
	}
}

// drained posts in SQD. Nothing starts until the QP is back in RTS; the peer's request in between
// shows that time has passed.
func drained(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateSQD, verbs.Attr{}))
	fill(a.bytes(0, 100), 1)
	a.post(verbs.WorkRequest{ID: 5, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 100)), Remote: b.mr.Remote(0)})
	b.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(b.at(1000, 8)), Remote: a.mr.Remote(1000)})
	n, err := a.scq.Poll(make([]verbs.Completion, 1))
	require.NoError(t, err)
	require.Zero(t, n)
	require.True(t, zero(b.bytes(0, 100)), "a drained queue starts nothing")
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateRTS, verbs.Attr{}))
	require.Equal(t, uint64(5), a.sent().ID)
	a.flush(b)
	require.Equal(t, pattern(100, 1), b.bytes(0, 100))
}

// resetForgets resets a QP in ERR whose completions were not polled. The completions are gone, and
// no earlier receive takes a new message.
func resetForgets(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range uint64(4) {
		a.post(verbs.WorkRequest{ID: i, Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 8))})
		a.postRecv(verbs.RecvRequest{ID: i})
	}
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateErr, verbs.Attr{}))
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
	require.NoError(t, b.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
	connect(t, a.qp, b.qp)
	for _, cq := range []*verbs.CQ{a.scq, a.rcq} {
		n, err := cq.Poll(make([]verbs.Completion, 4))
		require.NoError(t, err)
		require.Zero(t, n, "completions of before the reset")
	}
	b.postRecv(verbs.RecvRequest{ID: 8, Local: segs(b.at(0, 8))})
	a.do(verbs.WorkRequest{ID: 9, Op: verbs.OpSend, Local: segs(a.at(0, 8))})
	require.Equal(t, uint64(8), b.received().ID)
}

// resetFrees fills both queues and resets, several times. Each reset makes room for all requests
// again.
func resetFrees(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for range 3 {
		for i := range a.cfg.depth {
			a.post(verbs.WorkRequest{ID: uint64(i), Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 8))})
			a.postRecv(verbs.RecvRequest{ID: uint64(i)})
		}
		n, err := a.qp.PostSend([]verbs.WorkRequest{{Op: verbs.OpSend, Local: segs(a.at(0, 8))}})
		require.Zero(t, n)
		require.ErrorIs(t, err, driver.ErrQueueFull)
		n, err = a.qp.PostRecv(make([]verbs.RecvRequest, 1))
		require.Zero(t, n)
		require.ErrorIs(t, err, driver.ErrQueueFull)
		require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
		require.NoError(t, b.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
		connect(t, a.qp, b.qp)
	}
	a.flush(b)
}

// reconnect breaks a connection by a refused WRITE and makes it anew. Both directions work
// afterwards.
func reconnect(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for round := range 3 {
		bad := b.mr.Remote(b.cfg.memory)
		a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: bad})
		require.Equal(t, verbs.RemoteAccess, a.sent().Status)
		require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
		require.NoError(t, b.qp.Modify(testwatch.Context(t), verbs.StateReset, verbs.Attr{}))
		connect(t, a.qp, b.qp)
		fill(a.bytes(0, 500), round)
		a.do(verbs.WorkRequest{ID: 2, Op: verbs.OpWrite, Local: segs(a.at(0, 500)), Remote: b.mr.Remote(0)})
		a.flush(b)
		require.Equal(t, pattern(500, round), b.bytes(0, 500))
		b.do(verbs.WorkRequest{ID: 3, Op: verbs.OpRead, Local: segs(b.at(1000, 500)), Remote: a.mr.Remote(0)})
		require.Equal(t, pattern(500, round), b.bytes(1000, 500))
	}
}

// connectLater bounds the peer's silence by a time that bounds the sender's retries, too: a
// device sends a packet again only after a part of it.
func connectLater(t *testing.T, h Harness) {
	const silence = 30 * time.Second
	a, b := newStrangers(t, h)
	require.NoError(t, a.qp.Connect(testwatch.Context(t), b.qp.Address(), silence), "connecting is local")
	fill(a.bytes(0, 100), 1)
	a.post(verbs.WorkRequest{ID: 5, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 100)), Remote: b.mr.Remote(0)})
	time.Sleep(time.Millisecond) // makes it likelier that the request is under way
	require.NoError(t, b.qp.Connect(testwatch.Context(t), a.qp.Address(), silence))
	require.Equal(t, verbs.Success, a.sent().Status)
	a.flush(b)
	require.Equal(t, pattern(100, 1), b.bytes(0, 100))
}

// established connects one end after the other. The first one hears of nothing ahead of that, and nothing more behind it.
func established(t *testing.T, h Harness) {
	const silence = 30 * time.Second
	a, b := newStrangers(t, h)
	if !a.ctx.Info().Establishes {
		t.Skip("the device does not tell that a peer has connected")
	}
	var second atomic.Bool
	heard := make(chan *side, 4)
	for _, ends := range [][2]*side{{a, b}, {b, a}} {
		second.Store(ends[0] == b)
		require.NoError(t, ends[0].qp.ConnectWith(testwatch.Context(t), verbs.Attr{Peer: ends[1].qp.Address(), Timeout: silence, Established: func() {
			assert.True(t, second.Load(), "the other end has not begun to connect")
			heard <- ends[0]
		}}))
		time.Sleep(time.Millisecond) // makes it likelier that a wrong call comes
	}
	both := map[*side]bool{}
	for len(both) < 2 {
		select {
		case s := <-heard:
			both[s] = true
		case <-testwatch.Context(t).Done():
			require.Fail(t, "an end does not hear that the other has connected")
		}
	}
	a.flush(b)
	require.NoError(t, a.qp.Close())
	require.NoError(t, a.ctx.Close())
	require.NoError(t, b.ctx.Close())
	require.Empty(t, heard)
}

// badAddress connects to a part of an address, and to none. The QP stays in INIT, from which it can
// still connect.
func badAddress(t *testing.T, h Harness) {
	a, b := newStrangers(t, h)
	truncated := b.qp.Address()[:1]
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateInit, verbs.Attr{}))
	require.Error(t, a.qp.Modify(testwatch.Context(t), verbs.StateRTR, verbs.Attr{Peer: truncated}))
	require.Equal(t, verbs.StateInit, a.qp.State())
	require.ErrorIs(t, a.qp.Modify(testwatch.Context(t), verbs.StateRTR, verbs.Attr{}), driver.ErrInvalid)
	connect(t, a.qp, b.qp)
}
