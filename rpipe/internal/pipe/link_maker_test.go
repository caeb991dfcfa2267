package pipe

import (
	"context"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
)

// The links of these tests have so much data behind the card, and so many flags.
const (
	linkData  = 64 << 10
	linkFlags = 4
)

// A maker makes this rank's end of a link to the other rank, which cannot find it yet.
type maker struct {
	r    *testjob.Rank
	pool *Pool // nil: over the fabric
	made int
}

func (m *maker) link(ctx context.Context) Link {
	m.made++
	end := func(rank int) LinkEnd {
		return LinkEnd{Name: fmt.Sprintf("link#%d/%d", m.made, rank), Flags: linkFlags, Data: CardSize + linkData}
	}
	var l Link
	var err error
	if m.pool != nil {
		l, err = newWindowLink(m.pool, 1-m.r.Me, end(m.r.Me), end(1-m.r.Me), linkData, -1, m.prepare)
	} else {
		l, err = newFabricLink(ctx, team.Of(m.r.World), 1-m.r.Me, end(m.r.Me), end(1-m.r.Me), -1, m.prepare)
	}
	m.r.NoError(err)
	return l
}

// prepare writes a card that tells the rank.
func (m *maker) prepare(data []byte) { data[0] = byte(m.r.Me + 1) }

// connected makes a link, and connects it.
func (m *maker) connected(ctx context.Context) Link {
	l := m.link(ctx)
	for i := range linkFlags {
		m.r.Zero(l.Flag(i), "no peer has found it")
	}
	m.r.NoError(l.Appear(ctx))
	ok, err := l.Connect(ctx, true, func(card []byte) error {
		if card[0] != byte(2-m.r.Me) {
			return fmt.Errorf("the card begins with %d", card[0])
		}
		return nil
	})
	m.r.NoError(err)
	m.r.True(ok)
	return l
}

// bothRelease has both ranks give a link's memory back, once neither puts there any more.
func (m *maker) bothRelease(ctx context.Context, l Link) {
	m.r.NoError(l.Flush(ctx))
	m.r.NoError(m.r.World.Barrier(ctx))
	m.r.NoError(l.Release())
}

// eachLink runs body at two ranks on every transport and with every kind of link.
func eachLink(t *testing.T, body func(ctx context.Context, m *maker)) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
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

func poolOf(ctx context.Context, r *testjob.Rank) *Pool {
	pool, err := OverWindow(ctx, r.World, 2, func(o *Options) error { o.Heap = 2 * (CardSize + linkData); return nil })
	r.NoError(err)
	return pool
}

// awaitFlag waits until a flag has a value at least.
func awaitFlag(ctx context.Context, m *maker, l Link, flag int, value uint64) {
	m.r.NoError(l.Await(ctx, []int{flag}, func() bool { return l.Flag(flag) >= value }))
}
