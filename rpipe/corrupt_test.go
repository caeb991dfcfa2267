package rpipe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

func TestReadReturnsErrCorruptForImpossibleFlags(t *testing.T) {
	const heap = 4096 // 64 granules
	for name, word := range map[string]uint64{
		"of a lap to come":         1 << 63,
		"longer than an entry":     pipetest.InlineFlag(0, rmalloc.MostInline+8),
		"of nothing":               1 << 56,
		"beyond the heap":          pipetest.DataFlag(64, 8),
		"reaching over the end":    pipetest.DataFlag(63, 72),
		"that wraps around":        pipetest.DataFlag(1<<24-1, 1<<30-1),
		"of a part of an element":  pipetest.DataFlag(0, 12),
		"of a close with a length": 1<<56 | 2<<54 | 8,
	} {
		t.Run(name, func(t *testing.T) {
			pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
				for _, opts := range pipetest.Modes {
					rd, err := rpipe.OpenReader[int64](ctx, r.World, 0, append(opts, rpipe.WithHeap(heap))...)
					r.NoError(err)
					pipetest.Memory(pipetest.ReaderEnd(rd).End).Flags[0].Store(word)
					for range 2 {
						_, err = rd.Read(ctx)
						r.ErrorIs(err, rpipe.ErrCorrupt)
						_, err = rd.TryRead()
						r.ErrorIs(err, rpipe.ErrCorrupt)
					}
					r.NoError(rd.Close(ctx))
				}
			})
		})
	}
}

// A reader that enters blocks in its books when it frees them finds out then.
func TestReaderReturnsErrCorruptForOverlappingBlock(t *testing.T) {
	for name, free := range map[string]bool{"in use": false, "freed twice": true} {
		t.Run(name, func(t *testing.T) {
			pipetest.Alone(t, pipetest.Mapped, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
				l.Open(rpipe.WithWidth(8))
				end := pipetest.ReaderEnd(l.Rd).End
				for entry := 1; entry <= 2; entry++ {
					pipetest.Memory(end).Flags[end.Notification(entry)].Store(pipetest.DataFlag(5, 64))
				}
				for range 2 {
					b, err := l.Rd.Read(ctx)
					r.NoError(err)
					if free {
						err = l.Rd.Free(b)
					}
					if err != nil { // a reader that frees in larger batches finds out later
						r.ErrorIs(err, rpipe.ErrCorrupt)
					}
				}
				err := l.Rd.Sync(ctx)
				r.ErrorIs(err, rpipe.ErrCorrupt)
				r.ErrorContains(err, name)
				_, err = l.Rd.Read(ctx)
				r.ErrorIs(err, rpipe.ErrCorrupt)
				r.NoError(l.Rd.Close(ctx))
			})
		})
	}
}

func TestAllocReturnsErrCorruptForImpossibleTagsAndCredits(t *testing.T) {
	for name, damage := range map[string]func(m pipetest.Words){
		"more read than written":    func(m pipetest.Words) { m.Flags[pipe.CreditFlag].Store(77) },
		"more tags than the ring":   func(m pipetest.Words) { m.Flags[pipe.CreditFlag].Store(1000<<32 | 1) },
		"no tag where one is":       func(m pipetest.Words) { m.Flags[pipe.CreditFlag].Store(1<<32 | 1) },
		"a tag of a block not sent": tagged(pipetest.Tag(1, 1)),
		"a tag of a part of one":    tagged(pipetest.Tag(0, 1)),
		"a tag of more than one":    tagged(pipetest.Tag(0, 3)),
		"a tag beyond the heap":     tagged(pipetest.Tag(64, 1)),
		"a tag that wraps around":   tagged(pipetest.Tag(1<<24-1, 1<<25-1)),
		"a tag with spare bits":     tagged(pipetest.Tag(0, 2) | 1<<50),
		"a tag of another lap":      tagged(pipetest.Tag(0, 2) + 7<<56),
	} {
		t.Run(name, func(t *testing.T) {
			pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
				opts := []rpipe.Option{rpipe.WithHeap(4096)}
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
				r.NoError(err)
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
				r.NoError(err)
				b, err := w.Alloc(ctx, 128)
				r.NoError(err)
				r.Zero(b.Addr().Offset())
				r.NoError(w.Write(ctx, b))
				damage(pipetest.Memory(pipetest.WriterEnd(w).End))
				for range 2 {
					_, err = w.Alloc(ctx, 1)
					r.ErrorIs(err, rpipe.ErrCorrupt)
				}
				r.ErrorIs(w.Write(ctx, b), rpipe.ErrCorrupt)
				r.NoError(w.Close(ctx))
				r.NoError(rd.Close(ctx))
			})
		})
	}
}

// tagged announces one tag.
func tagged(tag uint64) func(m pipetest.Words) {
	return func(m pipetest.Words) {
		pipetest.Scribble(m.Data[pipetest.TagsAt:], tag)
		m.Flags[pipe.CreditFlag].Store(1<<32 | 1)
	}
}

func TestAllocReturnsErrCorruptForFetchedTags(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued} {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			opts := []rpipe.Option{rpipe.WithHeap(4096), rpipe.WithPolicy(rpipe.BestFit{})}
			w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
			r.NoError(err)
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
			r.NoError(err)
			r.NoError(w.Send(ctx, make([]byte, 128)))
			pipetest.Scribble(pipetest.Memory(pipetest.ReaderEnd(rd).End).Data[pipetest.TagsAt:], pipetest.Tag(3, 1))
			_, err = w.Alloc(ctx, 1)
			r.ErrorIs(err, rpipe.ErrCorrupt)
			r.NoError(w.Close(ctx))
			r.NoError(rd.Close(ctx))
		})
	}
}

func TestAllocReturnsErrCorruptForImpossibleCard(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued} {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			rnd := rand.New(rand.NewPCG(1, 1))
			for i := range 50 {
				name := rpipe.WithName(fmt.Sprint(i))
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, name)
				r.NoError(err)
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, name)
				r.NoError(err)
				word := rnd.IntN(2) // of what is compared
				pipetest.Scribble(pipetest.Memory(pipetest.ReaderEnd(rd).End).Data[8*word:], rnd.Uint64())
				_, err = w.Alloc(ctx, 1)
				if word == 0 {
					r.ErrorIs(err, rpipe.ErrCorrupt)
				} else {
					r.ErrorIs(err, runtime.ErrMismatch)
				}
				r.NoError(w.Close(ctx))
				r.NoError(rd.Close(ctx))
			}
		})
	}
}

// TestRandomWordsHarmNoMemoryOutsideHeap runs both ends among random words in random
// places of their flags and tags. Each call returns an error or a block within the
// heap; no call panics, and none runs without end.
func TestRandomWordsHarmNoMemoryOutsideHeap(t *testing.T) {
	for name, opts := range pipetest.Modes {
		t.Run(name, func(t *testing.T) {
			pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
				for seed := range uint64(200) {
					scribbled(ctx, r, seed, append(opts, rpipe.WithWidth(5), rpipe.WithHeap(2048), rpipe.WithBlocks(6),
						pipetest.WithoutAnnouncer()))
				}
			})
		})
	}
}

func scribbled(ctx context.Context, r *testjob.Rank, seed uint64, opts []rpipe.Option) {
	rnd := rand.New(rand.NewPCG(seed, 4))
	w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
	r.NoError(err)
	rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
	r.NoError(err)
	over, cancel := context.WithCancel(ctx)
	r.NoError(w.Send(ctx, []byte("connect")))
	_, err = rd.Recv(ctx, nil)
	r.NoError(err)
	cancel() // nothing waits from here on
	for range 60 {
		word := rnd.Uint64()
		switch rnd.IntN(4) {
		case 0: // looks good
			word = pipetest.DataFlag(rnd.IntN(40), rnd.IntN(300)) + uint64(rnd.IntN(3))<<56
			if rnd.IntN(2) == 0 {
				word = pipetest.InlineFlag(rnd.IntN(40), rnd.IntN(70)) + uint64(rnd.IntN(3))<<56
			}
		case 1:
			word = pipetest.Tag(rnd.IntN(40), rnd.IntN(10)) + uint64(rnd.IntN(3))<<56
		case 2:
			word = uint64(rnd.IntN(10))<<32 | uint64(rnd.IntN(8))
		}
		switch rnd.IntN(8) {
		case 0:
			end := pipetest.ReaderEnd(rd).End
			pipetest.Memory(end).Flags[end.Notification(rnd.IntN(6))].Store(word)
		case 1:
			pipetest.Memory(pipetest.WriterEnd(w).End).Flags[pipe.CreditFlag].Store(word)
		case 2:
			for _, data := range [][]byte{pipetest.Memory(pipetest.WriterEnd(w).End).Data, pipetest.Memory(pipetest.ReaderEnd(rd).End).Data} {
				if at := pipetest.TagsAt + 8*rnd.IntN(12); at < len(data) {
					pipetest.Scribble(data[at:], word)
				}
			}
		default:
			step(over, r, rnd, w, rd)
		}
	}
	_ = w.Close(over)
	_ = rd.Close(over)
}

// step does something with a pipe that is not well.
func step(ctx context.Context, r *testjob.Rank, rnd *rand.Rand, w *rpipe.Writer[byte], rd *rpipe.Reader[byte]) {
	known := func(err error) {
		for _, kind := range []error{nil, context.Canceled, io.EOF, rpipe.ErrWouldBlock, rpipe.ErrCorrupt, rpipe.ErrStale, rpipe.ErrClosed, rpipe.ErrTooLarge} {
			if errors.Is(err, kind) {
				return
			}
		}
		r.NoError(err)
	}
	if rnd.IntN(2) == 0 {
		b, err := w.Alloc(ctx, rnd.IntN(600))
		known(err)
		clear(b.Mem())
		if err == nil {
			known(w.Write(ctx, b))
		}
		return
	}
	b, err := rd.TryRead()
	known(err)
	clear(b.Mem())
	if err == nil && rnd.IntN(2) == 0 {
		known(rd.Free(b))
	}
}
