package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

// TestCancelingLosesNoSlots goes around a queue several times through package
// verbs. A cancellation makes verbs' count of the slots inexact.
func TestCancelingLosesNoSlots(t *testing.T) {
	ctx, wire := t.Context(), loop.New()
	var qps [2]*verbs.QP
	var cq *verbs.CQ
	for i := range qps {
		c, err := verbs.Open(ctx, wire, "", verbs.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		pd, err := c.AllocPD()
		require.NoError(t, err)
		cq, err = c.CreateCQ(ctx, 8)
		require.NoError(t, err)
		qps[i], err = pd.CreateQP(ctx, verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4})
		require.NoError(t, err)
	}
	require.NoError(t, qps[0].Connect(ctx, qps[1].Address(), 0))
	require.NoError(t, qps[1].Connect(ctx, qps[0].Address(), 0))
	wc := make([]verbs.Completion, 8)
	for id := range uint64(20) {
		flags := verbs.Flags(0)
		if id%2 == 0 {
			flags = verbs.Signaled
		}
		_, err := qps[1].PostSend([]verbs.WorkRequest{{ID: id, Op: verbs.OpSend, Flags: flags}})
		require.NoError(t, err)
		require.True(t, qps[1].Cancel(id))
		n, err := cq.Poll(wc)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, verbs.Canceled, wc[0].Status)
		require.Equal(t, verbs.StateRTS, qps[1].State(), "canceling is no failure")
	}
	for range 4 {
		_, err := qps[1].PostSend([]verbs.WorkRequest{{Op: verbs.OpSend}})
		require.NoError(t, err)
	}
	_, err := qps[1].PostSend([]verbs.WorkRequest{{Op: verbs.OpSend}})
	require.ErrorIs(t, err, driver.ErrQueueFull)
}
