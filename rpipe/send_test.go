package rpipe_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// content returns bytes that differ from those of other rounds.
func content(round int) []byte {
	sizes := []int{0, 1, 24, 16 << 10, 16<<10 - 1, 17_000, 100_000, 256 << 10, 256<<10 + 1, 300_000}
	block := make([]byte, sizes[round%len(sizes)])
	_, _ = rand.NewChaCha8([32]byte{byte(round)}).Read(block) // does not fail
	return block
}

func TestSendLeavesSourceToCaller(t *testing.T) {
	rounds := testwatch.Rounds(60)
	for name, opts := range map[string][]rpipe.Option{"push": nil, "pull": {rpipe.WithPull()}, "two puts": {rpipe.WithTwoPuts()}} {
		t.Run(name, func(t *testing.T) {
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				opts := append([]rpipe.Option{rpipe.WithHeap(1 << 20)}, opts...)
				switch r.Me {
				case 0:
					w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
					r.NoError(err)
					for round := range rounds {
						src := content(round)
						r.NoError(w.Send(ctx, src))
						clear(src) // it is ours again
					}
					r.NoError(w.Close(ctx))
				case 1:
					rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
					r.NoError(err)
					for round := range rounds {
						b, err := rd.Read(ctx)
						r.NoError(err)
						r.True(bytes.Equal(content(round), b.Mem()), "round %d", round)
						r.NoError(rd.Free(b))
						if round == rounds/2 {
							time.Sleep(20 * time.Millisecond) // until the writer, and its sockets, have no room
						}
					}
					r.NoError(rd.Close(ctx))
				}
			})
		})
	}
}

// A writer that gives up while it waits for room has its memory back, and nothing
// half written arrives.
func TestCanceledSendOfLargeBlockSendsNothing(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			body := bytes.Repeat([]byte{7}, 20_000)
			const sent = 3 // as much as there is room for
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
				for range sent {
					r.NoError(w.Send(ctx, body))
				}
				brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				r.ErrorIs(w.Send(brief, body), context.DeadlineExceeded)
				r.NoError(r.World.Barrier(ctx)) // now the reader begins
				for range 2 * sent {
					r.NoError(w.Send(ctx, body))
				}
			}, func(rd *rpipe.Reader[byte]) {
				r.NoError(r.World.Barrier(ctx))
				blocks := 0
				for b, err := range rd.All(ctx) {
					r.NoError(err)
					r.Equal(body, b.Mem())
					r.NoError(rd.Free(b))
					blocks++
				}
				r.Equal(3*sent, blocks)
			}, rpipe.WithHeap(64<<10))
		})
	})
}

// A large block leaves from where it lies, where the device copies no more than it must.
func TestSendCopiesNoLargeBlock(t *testing.T) {
	pipetest.Alone(t, testjob.Config{Provider: "tcp", Queued: true, Ranks: 1}, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open(rpipe.WithHeap(1 << 20))
		src := make([]byte, 100_000)
		l.Spy.Start()
		cost := l.Cost(func() { r.NoError(l.W.Send(l.Ctx, src)) })
		seen := l.Spy.Stop()
		r.EqualValues(2, cost.Requests(), "block and flag")
		r.Same(&src[0], &seen[0].Mem[0])
		l.Close()
	})
}
