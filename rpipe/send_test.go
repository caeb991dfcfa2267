package rpipe_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// parts returns two slices that are told from those of other rounds.
func parts(round int) (head, body []byte) {
	sizes := []int{0, 1, 16 << 10, 16<<10 - 1, 17_000, 100_000, 256 << 10, 256<<10 + 1, 300_000}
	block := make([]byte, []int{0, 3, 24}[round%3]+sizes[round%len(sizes)])
	dice := rand.New(rand.NewPCG(uint64(round), 0))
	for i := range block {
		block[i] = byte(dice.Uint32())
	}
	n := []int{0, 3, 24}[round%3]
	return block[:n:n], block[n:]
}

func TestSendPartsSendsOneBlock(t *testing.T) {
	const rounds = 60
	for name, opts := range map[string][]rpipe.Option{"push": nil, "pull": {rpipe.WithPull()}, "two puts": {rpipe.WithTwoPuts()}} {
		t.Run(name, func(t *testing.T) {
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				opts := append([]rpipe.Option{rpipe.WithHeap(1 << 20)}, opts...)
				switch r.Me {
				case 0:
					w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
					r.NoError(err)
					for round := range rounds {
						head, body := parts(round)
						r.NoError(w.SendParts(ctx, head, body))
						clear(head) // both are ours again
						clear(body)
					}
					r.NoError(w.Close(ctx))
				case 1:
					rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
					r.NoError(err)
					for round := range rounds {
						b, err := rd.Read(ctx)
						r.NoError(err)
						head, body := parts(round)
						r.True(bytes.Equal(append(head, body...), b.Mem()), "round %d", round)
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

func TestSendPartsSendsLongHead(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			head, body := bytes.Repeat([]byte{7}, 300_000), bytes.Repeat([]byte{8}, 20_000)
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, rpipe.WithHeap(1<<20))
				r.NoError(err)
				r.NoError(w.SendParts(ctx, head[:1], body[:1])) // it knows the device from here on
				r.NoError(w.SendParts(ctx, head, body))
				r.NoError(w.Close(ctx))
				return
			}
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, rpipe.WithHeap(1<<20))
			r.NoError(err)
			for _, want := range [][]byte{{7, 8}, append(head, body...)} {
				b, err := rd.Read(ctx)
				r.NoError(err)
				r.True(bytes.Equal(want, b.Mem()))
				r.NoError(rd.Free(b))
			}
			r.NoError(rd.Close(ctx))
		})
	})
}

// A writer that gives up while it waits for room has its memory back, and nothing
// half written arrives.
func TestCanceledSendPartsSendsNothing(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			body := bytes.Repeat([]byte{7}, 20_000)
			const sent = 3 // as much as there is room for
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
				for range sent {
					r.NoError(w.SendParts(ctx, []byte{1, 2}, body))
				}
				brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				r.ErrorIs(w.SendParts(brief, []byte{1, 2}, body), context.DeadlineExceeded)
				r.NoError(r.World.Barrier(ctx)) // now the reader begins
				for range 2 * sent {
					r.NoError(w.SendParts(ctx, []byte{1, 2}, body))
				}
			}, func(rd *rpipe.Reader[byte]) {
				r.NoError(r.World.Barrier(ctx))
				blocks := 0
				for b, err := range rd.All(ctx) {
					r.NoError(err)
					r.Equal(append([]byte{1, 2}, body...), b.Mem())
					r.NoError(rd.Free(b))
					blocks++
				}
				r.Equal(3*sent, blocks)
			}, rpipe.WithHeap(64<<10))
		})
	})
}

// Large parts leave from where they lie, where the device copies no more than it must.
func TestSendPartsCopiesNoLargeParts(t *testing.T) {
	pipetest.Alone(t, testjob.Config{Provider: "tcp", Queued: true, Ranks: 1}, func(_ context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		l.Open(rpipe.WithHeap(1 << 20))
		head, body := make([]byte, 24), make([]byte, 100_000)
		l.Spy.Start()
		cost := l.Cost(func() { r.NoError(l.W.SendParts(l.Ctx, head, body)) })
		seen := l.Spy.Stop()
		r.EqualValues(3, cost.Requests(), "two parts and a flag")
		r.Same(&head[0], &seen[0].Mem[0])
		r.Same(&body[0], &seen[1].Mem[0])
		l.Close()
	})
}
