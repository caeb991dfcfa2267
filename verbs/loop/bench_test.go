package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

// BenchmarkPostAndPoll measures the cost of package verbs' checks and queues,
// on the provider that itself does least.
func BenchmarkPostAndPoll(b *testing.B) {
	ctx := context.Background()
	p := loop.New()
	var qps [2]*verbs.QP
	var mrs [2]*verbs.MR
	var cq *verbs.CQ
	for i := range qps {
		c, err := verbs.Open(ctx, p, "", verbs.Options{})
		require.NoError(b, err)
		defer func() { require.NoError(b, c.Close()) }()
		pd, err := c.AllocPD()
		require.NoError(b, err)
		cq, err = c.CreateCQ(ctx, 64)
		require.NoError(b, err)
		qps[i], err = pd.CreateQP(ctx, verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 16, MaxInline: 64})
		require.NoError(b, err)
		mrs[i], err = pd.RegMR(ctx, driver.Memory{Bytes: make([]byte, 8192)}, verbs.AllAccess)
		require.NoError(b, err)
	}
	require.NoError(b, qps[0].Connect(ctx, qps[1].Address(), 0))
	require.NoError(b, qps[1].Connect(ctx, qps[0].Address(), 0))
	for name, wr := range map[string]verbs.WorkRequest{
		"write8":    {Op: verbs.OpWrite},
		"read8":     {Op: verbs.OpRead},
		"fetch-add": {Op: verbs.OpFetchAdd, Operand: 1},
	} {
		b.Run(name, func(b *testing.B) {
			wr.Flags, wr.Remote = verbs.Signaled, mrs[0].Remote(64)
			wr.Local = []verbs.Segment{{Mem: mrs[1].Bytes()[:8], LKey: mrs[1].LKey()}}
			wrs, wc := []verbs.WorkRequest{wr}, make([]verbs.Completion, 1)
			for b.Loop() {
				if _, err := qps[1].PostSend(wrs); err != nil {
					b.Fatal(err)
				}
				if n, err := cq.Poll(wc); n != 1 || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}
