package pipe_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

func TestLinkFindsLatePeer(t *testing.T) {
	eachLink(t, func(ctx context.Context, m *maker) {
		l, fits := m.link(ctx), func([]byte) error { return nil }
		ok, err := l.Connect(ctx, false, fits)
		m.r.NoError(err)
		m.r.False(ok, "neither has appeared")
		m.r.NoError(m.r.World.Barrier(ctx))
		m.r.NoError(l.Appear(ctx))
		ok, err = l.Connect(ctx, true, fits)
		m.r.NoError(err)
		m.r.True(ok)
		m.bothRelease(ctx, l)
		m.r.NoError(m.r.World.Barrier(ctx))
		ok, err = m.link(ctx).Connect(ctx, false, fits)
		m.r.NoError(err)
		m.r.False(ok, "the next one has not appeared")
	})
}

func TestLinkTellsPeerOfRefusedCard(t *testing.T) {
	eachLink(t, func(ctx context.Context, m *maker) {
		l, unfit := m.link(ctx), errors.New("unfit")
		m.r.NoError(l.Appear(ctx))
		m.r.Zero(l.PeerMemory.Flag(pipe.Disowned))
		m.r.NoError(m.r.World.Barrier(ctx))
		if m.r.Me == 0 {
			_, err := l.Connect(ctx, true, func([]byte) error { return unfit })
			m.r.ErrorIs(err, unfit)
			m.r.True(l.Disown(ctx))
		} else {
			for l.PeerMemory.Flag(pipe.Disowned) == 0 {
				m.r.NoError(ctx.Err())
				team.Of(m.r.World).Progress()
			}
		}
		m.r.NoError(m.r.World.Barrier(ctx))
		m.r.Equal(m.r.Me == 1, l.PeerMemory.Flag(pipe.Disowned) != 0)
	})
}

// lengths are on both sides of the limits at which a put changes its way.
var lengths = []int{0, 1, 8, 60, 1000, 4096, 4097, 40000}

// rounds has rank 0 put a pattern and a flag behind it, and rank 1 look at both.
func rounds(t *testing.T, put func(ctx context.Context, m *maker, l *pipe.End, src []byte, flag uint64)) {
	eachLink(t, func(ctx context.Context, m *maker) {
		l, round := m.connected(ctx), uint64(0)
		for lap := range 8 {
			for _, n := range lengths {
				round++
				want := bytes.Repeat([]byte{byte(round)}, n)
				if m.r.Me == 0 {
					put(ctx, m, l, want, round)
					awaitFlag(ctx, m, l, 1, round)
					continue
				}
				for lap%2 == 0 && l.PeerMemory.Flag(0) < round { // a wait looks later than a poll
					l.Progress()
					m.r.NoError(ctx.Err())
				}
				awaitFlag(ctx, m, l, 0, round)
				m.r.True(bytes.Equal(want, l.Data[pipe.CardSize:][:n]), "%d bytes of round %d", n, round)
				m.r.NoError(l.PutFlag(ctx, 0, nil, 1, round))
			}
		}
		m.bothRelease(ctx, l)
	})
}

func TestLinkPutsFlagBehindItsData(t *testing.T) {
	rounds(t, func(ctx context.Context, m *maker, l *pipe.End, src []byte, flag uint64) {
		m.r.NoError(l.PutFlag(ctx, pipe.CardSize, src, 0, flag))
		clear(src) // local completion
	})
}

func TestLinkPutsFlagBehindEarlierPuts(t *testing.T) {
	rounds(t, func(ctx context.Context, m *maker, l *pipe.End, src []byte, flag uint64) {
		m.r.NoError(l.PutData(ctx, pipe.CardSize, make([]byte, len(src))))
		half := len(src) / 2
		m.r.NoError(l.PutData(ctx, pipe.CardSize, src[:half]))
		m.r.NoError(l.PutData(ctx, pipe.CardSize+half, src[half:]))
		clear(src)
		m.r.NoError(l.PutFlag(ctx, 0, nil, 0, flag))
	})
}

func TestLinkPutsFlagBehindStagedData(t *testing.T) {
	for _, twice := range []bool{false, true} {
		t.Run(fmt.Sprintf("twice=%v", twice), func(t *testing.T) {
			rounds(t, func(ctx context.Context, m *maker, l *pipe.End, src []byte, flag uint64) {
				if len(src) == 0 || l.Remote() != nil { // a writer stages no empty block, nor one for mapped memory
					m.r.NoError(l.PutFlag(ctx, pipe.CardSize, src, 0, flag))
					return
				}
				stage, err := l.Stage(linkData)
				m.r.NoError(err)
				copy(stage[64:], src)
				l.Twice = twice
				m.r.NoError(l.PutStaged(ctx, pipe.CardSize, 64, len(src), 0, flag))
			})
		})
	}
}

func TestLinkPutsFlagsInOrder(t *testing.T) {
	const last = 300
	eachLink(t, func(ctx context.Context, m *maker) {
		l := m.connected(ctx)
		if m.r.Me == 0 {
			for i := range uint64(last) {
				m.r.NoError(l.PutFlag(ctx, 0, nil, 0, i+1))
				m.r.NoError(l.PutFlag(ctx, 0, nil, 1, i+1))
			}
			m.r.NoError(l.PutFlag(ctx, 0, nil, 2, 1))
		} else {
			for second := uint64(0); second < last; {
				m.r.NoError(l.Await(ctx, func() bool { return l.PeerMemory.Flag(1) > second }))
				second = l.PeerMemory.Flag(1)
				m.r.GreaterOrEqual(l.PeerMemory.Flag(0), second)
			}
			awaitFlag(ctx, m, l, 2, 1)
		}
		m.bothRelease(ctx, l)
	})
}

func TestLinkGetsItsPuts(t *testing.T) {
	eachLink(t, func(ctx context.Context, m *maker) {
		l := m.connected(ctx)
		for i, n := range lengths {
			src := bytes.Repeat([]byte{byte(i + 1)}, n)
			m.r.NoError(l.PutData(ctx, pipe.CardSize+8*i, src))
			got := make([]byte, n)
			m.r.NoError(l.Get(ctx, pipe.CardSize+8*i, got))
			m.r.True(bytes.Equal(src, got), "%d bytes", n)
		}
		l.Atomic = pipe.WordSize // where the memory gets words
		got := make([]byte, pipe.WordSize)
		m.r.NoError(l.GetOwn(ctx, pipe.CardSize+8*(len(lengths)-1), got))
		m.r.Equal(bytes.Repeat([]byte{byte(len(lengths))}, pipe.WordSize), got)
		m.bothRelease(ctx, l)
	})
}

// TestLinkStoresAndFetchesWholeWords has rank 0 change words of rank 1 while both look at
// them.
func TestLinkStoresAndFetchesWholeWords(t *testing.T) {
	whole := func(word uint64) bool { return word == word&0xff*0x0101010101010101 }
	eachLink(t, func(ctx context.Context, m *maker) {
		l := m.connected(ctx)
		if m.r.Me == 0 {
			got := make([]byte, 8)
			for i := range uint64(200) {
				m.r.NoError(l.PutFlag(ctx, 0, nil, 0, (i+1)%256*0x0101010101010101))
				m.r.NoError(l.Get(ctx, pipe.CardSize, got)) // rank 1 changes it
				m.r.True(whole(binary.NativeEndian.Uint64(got)), "%x", got)
			}
			m.r.NoError(l.PutFlag(ctx, 0, nil, 1, 1))
		} else {
			word := atomics.Word64(l.Data[pipe.CardSize:])
			for i := uint64(0); l.PeerMemory.Flag(1) == 0; i++ {
				m.r.NoError(ctx.Err())
				word.Store(i % 256 * 0x0101010101010101)
				m.r.True(whole(l.PeerMemory.Flag(0)), "%x", l.PeerMemory.Flag(0))
				l.Progress()
			}
		}
		m.bothRelease(ctx, l)
	})
}

func TestLinkFlushEndsAfterPutsArrive(t *testing.T) {
	eachLink(t, func(ctx context.Context, m *maker) {
		l := m.connected(ctx)
		src := bytes.Repeat([]byte{byte(m.r.Me + 1)}, 40000)
		m.r.NoError(l.PutData(ctx, pipe.CardSize, src))
		m.r.NoError(l.Flush(ctx))
		m.r.NoError(m.r.World.Barrier(ctx))
		m.r.True(bytes.Equal(bytes.Repeat([]byte{byte(2 - m.r.Me)}, 40000), l.Data[pipe.CardSize:][:40000]))
		m.bothRelease(ctx, l)
	})
}

func TestLinkAwaitEndsWithContextAndByRing(t *testing.T) {
	eachLink(t, func(ctx context.Context, m *maker) {
		l, enough := m.connected(ctx), errors.New("enough")
		never := func() bool { return false }
		brief, cancel := context.WithCancelCause(ctx)
		cancel(enough)
		m.r.ErrorIs(l.Await(brief, never), enough)
		m.r.NoError(l.Await(brief, func() bool { return true }), "it was ready")
		var rung atomic.Bool
		done := make(chan error, 2)
		looked := make(chan struct{}, 2)
		for _, await := range []func(context.Context, func() bool) error{l.Await, team.Of(m.r.World).Wait} {
			go func() {
				done <- await(ctx, func() bool {
					select {
					case looked <- struct{}{}:
					default:
					}
					return rung.Load()
				})
			}()
		}
		<-looked
		<-looked
		rung.Store(true)
		l.Ring()
		m.r.NoError(errors.Join(<-done, <-done))
		m.r.NoError(m.r.World.Barrier(ctx))
		m.bothRelease(ctx, l)
	})
}

// TestLinkAwaitFindsAWordThatWasStoredWithoutARing stores the word while the goroutine that waits
// for it sleeps.
func TestLinkAwaitFindsAWordThatWasStoredWithoutARing(t *testing.T) {
	eachLink(t, func(ctx context.Context, m *maker) {
		l, word, stored := m.connected(ctx), new(atomic.Uint64), make(chan struct{})
		bell := team.Of(m.r.World).Bell()
		before := bell.Parks()
		go func() {
			defer close(stored)
			for bell.Parks() == before && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			word.Store(1)
		}()
		m.r.NoError(l.Await(ctx, func() bool { return word.Load() == 1 }))
		<-stored
		m.bothRelease(ctx, l)
	})
}

// TestFlagsOfSeveralEndsRingOneBell has rank 0 put flags at two ends of rank 1 in turn, which
// waits for both at once.
func TestFlagsOfSeveralEndsRingOneBell(t *testing.T) {
	const last = 200
	eachLink(t, func(ctx context.Context, m *maker) {
		links := []*pipe.End{m.connected(ctx), m.connected(ctx)}
		for i := range uint64(last) {
			l := links[i%2]
			if m.r.Me == 0 {
				m.r.NoError(l.PutFlag(ctx, 0, nil, 0, i+1))
				awaitFlag(ctx, m, l, 1, i+1)
				continue
			}
			seen := func() bool { return max(links[0].PeerMemory.Flag(0), links[1].PeerMemory.Flag(0)) > i }
			m.r.NoError(team.Of(m.r.World).Wait(ctx, seen))
			m.r.NoError(l.PutFlag(ctx, 0, nil, 1, i+1))
		}
		m.bothRelease(ctx, links[0])
		m.bothRelease(ctx, links[1])
	})
}

func TestLinkAwaitEndsWithDeathOfPeer(t *testing.T) {
	testjob.EveryTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for _, over := range []string{"fabric", "window"} {
			t.Run(over, func(t *testing.T) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					m := &maker{r: r}
					if over == "window" {
						m.pool = poolOf(ctx, r)
					}
					l := m.connected(ctx)
					if r.Me == 1 {
						r.NoError(l.PutFlag(ctx, 0, nil, 0, 1))
						r.NoError(l.Flush(ctx))
						awaitFlag(ctx, m, l, 0, 1)
						r.Die()
					}
					awaitFlag(ctx, m, l, 0, 1)
					r.NoError(l.Fate())
					r.NoError(l.PutFlag(ctx, 0, nil, 0, 1))
					ctx = context.WithoutCancel(ctx)
					r.ErrorIs(l.Await(ctx, func() bool { return false }), runtime.ErrRankDead)
					r.ErrorIs(l.Fate(), runtime.ErrRankDead)
					r.NoError(l.Await(ctx, func() bool { return l.PeerMemory.Flag(0) == 1 }), "flags that have arrived count")
				})
				require.ErrorContains(t, err, "ended without returning")
				require.NotErrorIs(t, err, testwatch.ErrStuck)
			})
		}
	})
}

// TestSummaryNumbersFollowTheirPuts has rank 0 store a number in a word of a summary at rank 1
// behind each flag. Rank 1 sees a flag once it sees the number behind it.
func TestSummaryNumbersFollowTheirPuts(t *testing.T) {
	const last, place = 200, 3
	testjob.EveryTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			m := &maker{r: r}
			l := m.connected(ctx)
			y, err := pipe.NewSummary(ctx, r.World, place+1, &pipe.Options{})
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 0 {
				r.NoError(l.FindWord(ctx, y.Entry(place))) // as that of rank 1, which has made as many
				l.Step = 1
				for i := range uint64(last) {
					r.NoError(l.PutFlag(ctx, 0, nil, 0, i+1))
					r.NoError(l.Tell())
				}
			} else {
				for n := uint64(0); n < last; {
					r.NoError(l.Await(ctx, func() bool { return y.Words[place].Load() > n }))
					n = y.Words[place].Load()
					r.GreaterOrEqual(l.PeerMemory.Flag(0), n)
				}
			}
			m.bothRelease(ctx, l)
			y.GiveUp()
		})
	})
}

// TestLinkReleasesMemory makes more links than there is memory for at a time.
func TestLinkReleasesMemory(t *testing.T) {
	eachLink(t, func(ctx context.Context, m *maker) {
		before := int64(0)
		for i := range 10 {
			l := m.connected(ctx)
			m.r.NoError(l.PutFlag(ctx, 0, nil, 0, 7))
			awaitFlag(ctx, m, l, 0, 7)
			m.bothRelease(ctx, l)
			now := team.Of(m.r.World).Arena().Used()
			if i > 0 {
				m.r.Equal(before, now)
			}
			before = now
		}
	})
}
