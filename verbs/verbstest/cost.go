package verbstest

import (
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
)

func costCases() []testCase {
	return []testCase{{"PostAndPollAllocateNothing", allocations}}
}

func allocations(t *testing.T, h Harness) {
	if h.Wrap != nil {
		t.Skip("what a wrapper costs is its own business")
	}
	a, b := newPair(t, h)
	for name, wr := range map[string]verbs.WorkRequest{
		"write 8":       {Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)},
		"inline":        {Op: verbs.OpWrite, Flags: verbs.Inline, Local: segs(a.at(0, min(8, a.ctx.Info().MaxInline))), Remote: b.mr.Remote(64)},
		"write 4 KiB":   {Op: verbs.OpWrite, Local: segs(a.at(0, 4096)), Remote: b.mr.Remote(64)},
		"read 8":        {Op: verbs.OpRead, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)},
		"fetch-add":     {Op: verbs.OpFetchAdd, Operand: 1, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)},
		"send, receive": {Op: verbs.OpSend, Local: segs(a.at(0, 8))},
	} {
		t.Run(name, func(t *testing.T) {
			wr.Flags |= verbs.Signaled
			wrs := []verbs.WorkRequest{wr}
			recv := []verbs.RecvRequest{{Local: segs(b.at(128, 8))}}
			wc := make([]verbs.Completion, 4)
			failed := false
			once := func() {
				if wr.Op == verbs.OpSend {
					n, err := b.qp.PostRecv(recv)
					failed = failed || n != 1 || err != nil
				}
				n, err := a.qp.PostSend(wrs)
				failed = failed || n != 1 || err != nil || !pollOne(a.scq, wc)
				if wr.Op == verbs.OpSend {
					failed = failed || !pollOne(b.rcq, wc)
				}
			}
			for range 100 {
				once() // what is made on first use has been made
			}
			allocs := testing.AllocsPerRun(500, once)
			require.False(t, failed)
			require.Zero(t, allocs)
		})
	}
}

// pollOne polls until one completion came. It neither sleeps nor allocates.
func pollOne(cq *verbs.CQ, wc []verbs.Completion) bool {
	for range 50_000_000 {
		n, err := cq.Poll(wc)
		if n > 0 || err != nil {
			return n == 1 && err == nil && wc[0].Status == verbs.Success
		}
		goruntime.Gosched()
	}
	return false
}
