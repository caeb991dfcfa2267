package verbstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

func stressCases() []testCase {
	return []testCase{
		{"RandomRequestsLeaveTheMemoryOfAModel", randomModel},
		{"ManyGoroutinesPostToOneQueue", sharedQueue},
		{"ManyQueuesBetweenTwoContexts", manyQueues},
		{"SeveralPollersOfAFullQueueLoseNothing", severalPollers},
	}
}

// randomModel runs a random program twice: through the queue, and on a slice.
func randomModel(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const span = 16 << 10
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	want := make([]byte, span)
	for i := range 600 {
		n, off := 1+rng.IntN(2000), rng.IntN(span-2000)
		wr := verbs.WorkRequest{ID: uint64(i), Remote: b.mr.Remote(off), Local: segs(a.at(off%977, n))}
		switch rng.IntN(4) {
		case 0:
			wr.Op, wr.Operand = verbs.OpFetchAdd, rng.Uint64()
			off &^= 7
			wr.Remote, wr.Local = b.mr.Remote(off), segs(a.at(0, 8))
			a.do(wr)
			require.Equal(t, want[off:off+8], a.bytes(0, 8), "step %d: old value at %d", i, off)
			put64(want[off:], get64(want[off:])+wr.Operand)
		case 1:
			wr.Op = verbs.OpRead
			a.do(wr)
			require.True(t, string(want[off:off+n]) == string(wr.Local[0].Mem), "step %d: %d bytes at %d", i, n, off)
		default:
			wr.Op = verbs.OpWrite
			copy(want[off:], fill(wr.Local[0].Mem, i))
			a.do(wr)
		}
	}
	a.flush(b)
	require.True(t, string(want) == string(b.bytes(0, span)), "memory differs from the model")
}

// sharedQueue has several goroutines post to one QP while one polls. Each may
// have one request outstanding and gets its completion from the poller.
func sharedQueue(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const workers = 8
	rounds := h.rounds(200)
	var told [workers]chan verbs.Completion
	for i := range told {
		told[i] = make(chan verbs.Completion, 1)
	}
	g, ctx := errgroup.WithContext(t.Context())
	g.Go(func() error {
		for range workers * rounds {
			wc, err := next(a.scq)
			if err != nil {
				return err
			}
			told[wc.ID%workers] <- wc
		}
		return nil
	})
	for w := range workers {
		mine := segment(t, a.mr, w*4096, 4096)
		g.Go(func() error { return worker(ctx, a, b, w, mine, rounds, workers, told[w]) })
	}
	require.NoError(t, g.Wait())
}

// severalPollers runs as many goroutines as the completion queue is deep. Each posts
// one request at a time, polls, and takes any completion that it finds.
func severalPollers(t *testing.T, h Harness) {
	const depth = 4
	a, b := newPair(t, h, withCQDepth(depth))
	g, ctx := errgroup.WithContext(testwatch.Context(t))
	for range depth {
		write := verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}
		g.Go(func() error {
			for round := range h.rounds(1000) {
				for taken := 0; taken == 0; {
					var err error
					if taken, err = a.qp.PostSend([]verbs.WorkRequest{write}); err != nil && !errors.Is(err, driver.ErrQueueFull) || ctx.Err() != nil {
						return errors.Join(err, context.Cause(ctx))
					}
				}
				if wc, err := next(a.scq); err != nil || wc.Status != verbs.Success {
					return errors.Join(fmt.Errorf("round %d: %+v", round, wc), err)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

// worker writes and reads back on a QP that all workers share. It takes its completions from told,
// to which another goroutine hands them. Its memory at both ends is its own.
func worker(ctx context.Context, a, b *side, w int, mine verbs.Segment, rounds, workers int, told <-chan verbs.Completion) error {
	to := b.mr.Remote(w * 4096)
	for i := range rounds {
		n := 1 + (i*37+w)%4000
		wr := verbs.WorkRequest{ID: uint64(i*workers + w), Op: verbs.OpWrite, Flags: verbs.Signaled,
			Local: segs(verbs.Segment{Mem: mine.Mem[:n], LKey: mine.LKey}), Remote: to}
		if i%2 == 0 {
			fill(mine.Mem[:n], i)
		} else {
			n = 1 + ((i-1)*37+w)%4000
			wr.Op, wr.Local[0].Mem = verbs.OpRead, mine.Mem[:n]
			clear(mine.Mem)
		}
		for taken := 0; taken == 0; {
			var err error
			if taken, err = a.qp.PostSend([]verbs.WorkRequest{wr}); err != nil && !errors.Is(err, driver.ErrQueueFull) {
				return err
			}
		}
		select {
		case wc := <-told:
			if wc.ID != wr.ID || wc.Status != verbs.Success {
				return fmt.Errorf("worker %d, round %d: %+v", w, i, wc)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if i%2 == 1 && string(mine.Mem[:n]) != string(pattern(n, i-1)) {
			return fmt.Errorf("worker %d, round %d: read back something else", w, i)
		}
	}
	return nil
}

// manyQueues has a goroutine for each of many connections write and read back.
func manyQueues(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const queues = 12
	rounds := h.rounds(60)
	var g errgroup.Group
	for q := range queues {
		cq := a.newCQ(64)
		qp, peer := a.newQPOn(cq, cq), b.newQP()
		connect(t, qp, peer)
		mine := segment(t, a.mr, q*4096, 4096)
		g.Go(func() error {
			for i := range rounds {
				fill(mine.Mem[:2000], i+q)
				err := errors.Join(
					doOn(qp, cq, verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(cut(mine, 0, 2000)), Remote: b.mr.Remote(q * 4096)}),
					doOn(qp, cq, verbs.WorkRequest{Op: verbs.OpRead, Local: segs(cut(mine, 2000, 2000)), Remote: b.mr.Remote(q * 4096)}))
				if err != nil {
					return err
				}
				if string(mine.Mem[:2000]) != string(mine.Mem[2000:4000]) {
					return fmt.Errorf("queue %d, round %d: read back something else", q, i)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

func cut(s verbs.Segment, offset, n int) verbs.Segment {
	return verbs.Segment{Mem: s.Mem[offset : offset+n], LKey: s.LKey}
}
