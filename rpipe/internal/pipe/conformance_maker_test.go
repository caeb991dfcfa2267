package pipe_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/internal/overwindow"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// The links of these tests have so much data behind the card, and so many flags.
const (
	linkData  = 64 << 10
	linkFlags = 4
)

// markAt is a byte of the card that no pipe uses.
const markAt = pipe.CardSize - 17

// A maker makes this rank's end of a link to the other rank, which cannot find it yet.
type maker struct {
	r    *testjob.Rank
	pool *overwindow.Pool // nil: over the fabric
	made int
}

func (m *maker) options(o *pipe.Options) error {
	o.Layer = overwindow.Layer(m.pool)
	return nil
}

func (m *maker) link(ctx context.Context) *pipe.End {
	m.made++
	end := func(rank int) pipe.Layout {
		return pipe.Layout{Name: fmt.Sprintf("link#%d/%d", m.made, rank), Flags: linkFlags, Data: pipe.CardSize + linkData}
	}
	l, err := pipe.Draft[byte](m.r.World, 1-m.r.Me, m.r.Me == 0, []pipe.Option{m.options})
	m.r.NoError(err)
	m.r.NoError(l.Hook(ctx, m.made, end(m.r.Me), end(1-m.r.Me), linkData))
	l.Data[markAt] = byte(m.r.Me + 1)
	return l
}

// connected makes a link, and connects it.
func (m *maker) connected(ctx context.Context) *pipe.End {
	l := m.link(ctx)
	for i := range linkFlags {
		m.r.Zero(l.PeerMemory.Flag(i), "no peer has found it")
	}
	m.r.NoError(l.Appear(ctx))
	ok, err := l.Connect(ctx, true, func(card []byte) error {
		if card[markAt] != byte(2-m.r.Me) {
			return fmt.Errorf("the card has mark %d", card[markAt])
		}
		return nil
	})
	m.r.NoError(err)
	m.r.True(ok)
	return l
}

// bothRelease has both ranks give a link's memory back, once neither puts there any more.
func (m *maker) bothRelease(ctx context.Context, l *pipe.End) {
	m.r.NoError(l.Flush(ctx))
	m.r.NoError(m.r.World.Barrier(ctx))
	m.r.NoError(l.Release())
}

// eachLink runs body at two ranks on every transport and with every kind of link.
func eachLink(t *testing.T, body func(ctx context.Context, m *maker)) {
	testjob.EveryTransport(t, 2, func(t *testing.T, c testjob.Config) {
		t.Run("fabric", func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) { body(ctx, &maker{r: r}) })
		})
		t.Run("window", func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				m := &maker{r: r, pool: poolOf(ctx, r)}
				body(ctx, m)
				r.NoError(m.pool.Close(ctx))
			})
		})
	})
}

func poolOf(ctx context.Context, r *testjob.Rank) *overwindow.Pool {
	pool, err := overwindow.New(ctx, r.World, 4, func(o *pipe.Options) error { o.Heap = 2 * (pipe.CardSize + linkData); return nil })
	r.NoError(err)
	return pool
}

// awaitFlag waits until a flag has a value at least.
func awaitFlag(ctx context.Context, m *maker, l *pipe.End, flag int, value uint64) {
	m.r.NoError(l.Await(ctx, func() bool { return l.PeerMemory.Flag(flag) >= value }))
}
