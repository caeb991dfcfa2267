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

// allocations posts and polls each kind of request again and again, and counts what the process allocates.
func allocations(t *testing.T, h Harness) {
	if h.Wrap != nil {
		t.Skip("what a wrapper costs is its own business")
	}
	a, b := newPair(t, h)
	for name, wr := range costlyRequests(a, b) {
		t.Run(name, func(t *testing.T) {
			switch wr.Op {
			case verbs.OpAccumulate:
				needExtended(t, a)
			case verbs.OpWriteBlocks, verbs.OpReadBlocks:
				needBlocks(t, a)
			}
			once := roundTrip(a, b, wr)
			for range 100 {
				require.True(t, once()) // the first use allocates
			}
			failed := false
			allocs := mallocs(runs, func() { failed = !once() || failed })
			require.False(t, failed)
			require.Less(t, allocs, uint64(runs/4+runs*h.Allocations), "allocations in %d rounds", runs)
		})
	}
}

// costlyRequests returns a request of each kind from a to b, without completion.
func costlyRequests(a, b *side) map[string]verbs.WorkRequest {
	return map[string]verbs.WorkRequest{
		"write 8":       {Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)},
		"inline":        {Op: verbs.OpWrite, Flags: verbs.Inline, Local: segs(a.at(0, min(8, a.ctx.Info().MaxInline))), Remote: b.mr.Remote(64)},
		"write 4 KiB":   {Op: verbs.OpWrite, Local: segs(a.at(0, 4096)), Remote: b.mr.Remote(64)},
		"read 8":        {Op: verbs.OpRead, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)},
		"fetch-add":     {Op: verbs.OpFetchAdd, Operand: 1, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)},
		"accumulate":    {Op: verbs.OpAccumulate, Atomic: verbs.AtomicAdd, Width: 8, Local: segs(a.at(0, 4096)), Remote: b.mr.Remote(64)},
		"fetch each":    {Op: verbs.OpAccumulate, Flags: verbs.Fetch, Atomic: verbs.AtomicAdd, Width: 8, Local: segs(a.at(0, 4096)), Remote: b.mr.Remote(64)},
		"write blocks":  {Op: verbs.OpWriteBlocks, Flags: verbs.Inline, Runs: someRuns, Local: segs(a.at(0, 160)), Remote: b.mr.Remote(1024)},
		"read blocks":   {Op: verbs.OpReadBlocks, Runs: someRuns, Local: segs(a.at(0, 160)), Remote: b.mr.Remote(1024)},
		"send, receive": {Op: verbs.OpSend, Local: segs(a.at(0, 8))},
	}
}

// roundTrip returns a function that posts wr at a and polls its completion, and that of the RECV if wr
// is a SEND. The function reports whether all of that succeeded.
func roundTrip(a, b *side, wr verbs.WorkRequest) (once func() bool) {
	wr.Flags |= verbs.Signaled
	wrs := []verbs.WorkRequest{wr}
	recv := []verbs.RecvRequest{{Local: segs(b.at(128, 8))}}
	wc := make([]verbs.Completion, 4)
	return func() bool {
		if wr.Op == verbs.OpSend {
			if n, err := b.qp.PostRecv(recv); n != 1 || err != nil {
				return false
			}
		}
		if n, err := a.qp.PostSend(wrs); n != 1 || err != nil || !pollOne(a.scq, b.scq, wc) {
			return false
		}
		return wr.Op != verbs.OpSend || pollOne(b.rcq, a.scq, wc)
	}
}

// runs is the number of repetitions of a request. The runtime itself may allocate
// once in a while; a post or poll that allocates would do so in each.
const runs = 1000

// mallocs counts allocations of the whole process while f runs n times, those of a provider's
// goroutines, too. Function testing.AllocsPerRun would leave one processor for them and f's
// polling.
func mallocs(n int, f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for range n {
		f()
	}
	goruntime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// pollOne polls until one completion came. It polls the peer's CQ as well, so
// that the peer makes progress. It neither sleeps nor allocates.
func pollOne(cq, other *verbs.CQ, wc []verbs.Completion) bool {
	for range 50_000_000 {
		n, err := cq.Poll(wc)
		if n > 0 || err != nil {
			return n == 1 && err == nil && wc[0].Status == verbs.Success
		}
		if _, err := other.Poll(nil); err != nil {
			return false
		}
		goruntime.Gosched()
	}
	return false
}
