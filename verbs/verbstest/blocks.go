package verbstest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// blocksCases lists the promises about requests for runs of blocks.
func blocksCases() []testCase {
	return []testCase{
		{"BlocksGoWhereTheirRunsSay", randomBlocks},
		{"LargestBlocksArriveWhole", largestBlocks},
		{"BlocksTakeEffectInOrder", blocksInOrder},
		{"InlineBlocksAreTheCallersAtOnce", inlineBlocks},
		{"TargetRefusesAllBlocksIfItRefusesOne", refusedBlocks},
		{"MalformedBlocksAreNeverPosted", malformedBlocks},
	}
}

func needBlocks(t *testing.T, s *side) {
	t.Helper()
	if !s.ctx.Info().Blocks {
		t.Skip("the device takes no blocks")
	}
}

// someRuns hold 160 bytes, from 40 bytes ahead of a request's address on.
var someRuns = []verbs.Run{{At: 0, Block: 8, Count: 10, Stride: 24}, {At: -40, Block: 5, Count: 1}, {At: 900, Block: 25, Count: 3, Stride: -32}}

// randomBlocks compares writes and reads of random runs with loops over their bytes.
func randomBlocks(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needBlocks(t, a)
	const half = 8 << 10
	rnd := rand.New(rand.NewPCG(7, 7))
	for round := range 60 {
		var runs []verbs.Run
		var places []int
		used := map[int]bool{}
		for range 1 + rnd.IntN(12) {
			r := verbs.Run{At: rnd.IntN(half) - half/2, Block: 1 << rnd.IntN(5), Count: 1 + rnd.IntN(6), Stride: rnd.IntN(128) - 64}
			if at, ok := bytesOf(r, used, half/2); ok {
				runs, places = append(runs, r), append(places, at...)
			}
		}
		if len(runs) == 0 {
			continue
		}
		fill(a.bytes(0, len(places)), round)
		want := fill(make([]byte, half), round+1)
		copy(b.bytes(0, half), want)
		wr := verbs.WorkRequest{Op: verbs.OpWriteBlocks, Runs: runs, Local: segs(a.at(0, len(places))), Remote: b.mr.Remote(half / 2)}
		for i, at := range places {
			want[half/2+at] = a.bytes(i, 1)[0]
		}
		a.do(wr)
		a.flush(b)
		require.Equal(t, want, b.bytes(0, half), "runs %v", runs)
		fill(b.bytes(0, half), round+2)
		wr.Op = verbs.OpReadBlocks
		require.Equal(t, len(places), a.do(wr).Bytes)
		for i, at := range places {
			require.Equal(t, b.bytes(half/2+at, 1)[0], a.bytes(i, 1)[0], "byte %d of runs %v", i, runs)
		}
	}
}

// bytesOf returns the places of r's bytes. It is not ok if one is used or half or more away.
func bytesOf(r verbs.Run, used map[int]bool, half int) (places []int, ok bool) {
	for i := range r.Count {
		for k := range r.Block {
			at := r.At + i*r.Stride + k
			if at < -half || at >= half || used[at] {
				return nil, false
			}
			used[at] = true
			places = append(places, at)
		}
	}
	return places, true
}

// largestBlocks moves as many bytes as a request may have: in one block, in blocks of a byte, and
// in such blocks from back to front.
func largestBlocks(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needBlocks(t, a)
	const n = driver.MaxBlocks - driver.RunSize
	for _, r := range []verbs.Run{{Block: n, Count: 1}, {Block: 1, Count: n, Stride: 1}, {At: n - 1, Block: 1, Count: n, Stride: -1}} {
		fill(a.bytes(0, n), r.Stride)
		clear(b.mr.Bytes())
		wr := verbs.WorkRequest{Op: verbs.OpWriteBlocks, Runs: []verbs.Run{r}, Local: segs(a.at(0, n)), Remote: b.mr.Remote(0)}
		a.do(wr)
		want := append([]byte(nil), a.bytes(0, n)...)
		clear(a.bytes(0, n))
		wr.Op = verbs.OpReadBlocks
		a.do(wr)
		require.True(t, string(want) == string(a.bytes(0, n)), "run %v", r)
	}
}

// blocksInOrder overwrites the same blocks by requests that are under way together, plain writes
// among them. The read behind them must see the last one whole.
func blocksInOrder(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needBlocks(t, a)
	const rounds, n = 12, 160 // fewer than the queue holds
	for i := range rounds {
		wr := verbs.WorkRequest{Op: verbs.OpWriteBlocks, Flags: verbs.Inline, Runs: someRuns, Local: segs(verbs.Segment{Mem: fill(make([]byte, n), i)}), Remote: b.mr.Remote(1024)}
		if i%2 == 0 { // the last request is of blocks
			wr.Op, wr.Runs = verbs.OpWrite, nil
		}
		a.post(wr)
	}
	a.do(verbs.WorkRequest{Op: verbs.OpReadBlocks, Runs: someRuns, Local: segs(a.at(0, n)), Remote: b.mr.Remote(1024)})
	require.Equal(t, fill(make([]byte, n), rounds-1), a.bytes(0, n))
}

// inlineBlocks clears bytes and runs as soon as the post has returned. The request must use those
// from before.
func inlineBlocks(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needBlocks(t, a)
	for _, n := range []int{8, 4 << 10, 60 << 10} {
		n = min(n, a.ctx.Info().MaxInline)
		bytes, runs := make([]byte, n), make([]verbs.Run, 1)
		for i := range 8 {
			fill(bytes, i)
			runs[0] = verbs.Run{Block: 1, Count: n, Stride: 1}
			a.post(verbs.WorkRequest{Op: verbs.OpWriteBlocks, Flags: verbs.Inline, Runs: runs, Local: segs(verbs.Segment{Mem: bytes}), Remote: b.mr.Remote(0)})
			clear(bytes)
			runs[0] = verbs.Run{}
		}
		a.flush(b)
		require.Equal(t, fill(bytes, 7), b.bytes(0, n))
	}
}

// refusedBlocks has one run leave the region among runs that do not. The target must apply none of
// them.
func refusedBlocks(t *testing.T, h Harness) {
	far := func(at int) []verbs.Run {
		return append([]verbs.Run{{At: at, Block: 8, Count: 1}}, someRuns...)
	}
	for name, runs := range map[string][]verbs.Run{
		"BeforeTheRegion":     far(-1032),
		"BehindTheRegion":     far(64<<10 - 1024),
		"FarAway":             far(1 << 57),
		"FarAhead":            far(-1 << 57),
		"StrideOverTheEnd":    {{At: 0, Block: 84, Count: 2, Stride: 64 << 10}},
		"StrideOverTheBegin":  {{At: 0, Block: 84, Count: 2, Stride: -1025}},
		"StrideAroundAllOfIt": {{At: 0, Block: 84, Count: 2, Stride: 1 << 57}},
	} {
		for _, op := range []verbs.Opcode{verbs.OpWriteBlocks, verbs.OpReadBlocks} {
			t.Run(name+op.String(), func(t *testing.T) {
				a, b := newPair(t, h)
				needBlocks(t, a)
				a.refusedBy(b, verbs.WorkRequest{Op: op, Runs: runs, Local: segs(a.at(0, 168)), Remote: b.mr.Remote(1024)})
			})
		}
	}
	for op, right := range map[verbs.Opcode]verbs.Access{verbs.OpWriteBlocks: verbs.RemoteWrite, verbs.OpReadBlocks: verbs.RemoteRead} {
		t.Run("WithoutTheRightFor"+op.String(), func(t *testing.T) {
			a, b := newPair(t, h, withAccess(verbs.AllAccess&^right))
			needBlocks(t, a)
			a.refusedBy(b, verbs.WorkRequest{Op: op, Runs: someRuns, Local: segs(a.at(0, 160)), Remote: b.mr.Remote(1024)})
		})
	}
}

// malformedBlocks posts runs that package verbs must refuse by itself: runs whose bytes are not
// those of the segment, or whose extent overflows. A device without blocks refuses each with
// ErrUnsupported.
func malformedBlocks(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(2*driver.MaxBlocks))
	want := driver.ErrInvalid
	if !a.ctx.Info().Blocks {
		want = driver.ErrUnsupported
	}
	run := func(runs ...verbs.Run) func(wr *verbs.WorkRequest) {
		return func(wr *verbs.WorkRequest) { wr.Runs = runs }
	}
	for name, spoil := range map[string]func(wr *verbs.WorkRequest){
		"no run":            run(),
		"too few bytes":     run(verbs.Run{Block: 10, Count: 1}),
		"too many bytes":    run(verbs.Run{Block: 10, Count: 17}),
		"no block":          run(someRuns[0], someRuns[1], someRuns[2], verbs.Run{Block: 8}),
		"blocks of nothing": run(someRuns[0], someRuns[1], someRuns[2], verbs.Run{Count: 3}),
		"minus a block":     run(verbs.Run{Block: -10, Count: -16}),
		"an endless stride": run(verbs.Run{Block: 10, Count: 16, Stride: math.MaxInt}),
		"a far run":         run(verbs.Run{At: math.MinInt, Block: 160, Count: 1}),
		"no segment":        func(wr *verbs.WorkRequest) { wr.Local = nil },
		"two segments":      func(wr *verbs.WorkRequest) { wr.Local = segs(a.at(0, 80), a.at(80, 80)) },
		"too large": func(wr *verbs.WorkRequest) {
			wr.Runs, wr.Local = []verbs.Run{{Block: 1, Count: driver.MaxBlocks, Stride: 1}}, segs(a.at(0, driver.MaxBlocks))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, op := range []verbs.Opcode{verbs.OpWriteBlocks, verbs.OpReadBlocks} {
				wr := verbs.WorkRequest{Op: op, Runs: someRuns, Local: segs(a.at(0, 160)), Remote: b.mr.Remote(1024)}
				spoil(&wr)
				a.refusesToPost(b, wr, want)
			}
		})
	}
	t.Run("write with runs", func(t *testing.T) {
		a.refusesToPost(b, verbs.WorkRequest{Op: verbs.OpWrite, Runs: someRuns, Local: segs(a.at(0, 160)), Remote: b.mr.Remote(0)}, driver.ErrInvalid)
	})
	t.Run("inline read", func(t *testing.T) {
		a.refusesToPost(b, verbs.WorkRequest{Op: verbs.OpReadBlocks, Flags: verbs.Inline, Runs: someRuns, Local: segs(a.at(0, 160)), Remote: b.mr.Remote(0)}, want)
	})
}
