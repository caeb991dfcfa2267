package catalog_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/device/catalog"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestMain(m *testing.M) { testjob.Main(m, map[string]testjob.Body{"share": shareUntilDeath}) }

const page = 4096

// pieceOf makes a piece of pages in a memfd, in place of a device.
func pieceOf(r *testjob.Rank, pages int, about device.About) (p *device.Piece, end func()) {
	fd, err := memory.NewMemfd("device", int64(pages*page))
	r.NoError(err)
	r.NoError(fd.Commit(0, fd.Size()))
	m := device.Wrap(fd.Memory(0, fd.Size()), about, fd.Close)
	p, err = m.Allocate(pages * page)
	r.NoError(err)
	return p, func() {
		r.NoError(p.Free())
		r.NoError(m.Close())
	}
}

// publish has each rank offer pages of a device.
func publish(ctx context.Context, r *testjob.Rank, topo catalog.Topology, pages int, about device.About, rules catalog.Rules) (*catalog.Catalog, func()) {
	p, end := pieceOf(r, pages, about)
	c, err := catalog.Publish(ctx, r.World, topo, catalog.Offer{Name: "memory", Piece: p, Rules: rules})
	r.NoError(err)
	return c, func() {
		r.NoError(c.Close(ctx))
		end()
	}
}

// Ranks allocate and free at random places; each writes its buffers whole, and finds them as it left them.
func TestLeasesOfAllRanksNeverOverlap(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		c, end := publish(ctx, r, catalog.Topology{}, 4, device.About{Kind: device.HugePages, Node: -1}, catalog.Rules{})
		for round := range 6 {
			n := (1 + (round+r.Me)%2) * page
			l, err := c.Allocate(ctx, n-5, catalog.Rules{})
			if err != nil {
				r.ErrorIs(err, catalog.ErrFull)
				continue
			}
			r.Equal(n, l.Len)
			b, err := c.Open(l)
			r.NoError(err)
			data, got := make([]byte, n), make([]byte, n)
			for i := range data {
				data[i] = byte(r.Me*31 + round + i)
			}
			r.NoError(b.Window.Put(ctx, b.Target, b.Index, data))
			r.NoError(b.Window.Flush(ctx, b.Target))
			r.NoError(b.Window.Get(ctx, b.Target, b.Index, got))
			r.Equal(data, got)
			r.NoError(c.Free(ctx, l))
			r.ErrorIs(c.Free(ctx, l), catalog.ErrLease)
		}
		r.NoError(r.World.Barrier(ctx))
		if r.Me == 0 { // all is free again
			for range r.N {
				_, err := c.Allocate(ctx, 4*page, catalog.Rules{})
				r.NoError(err)
			}
			_, err := c.Allocate(ctx, 1, catalog.Rules{})
			r.ErrorIs(err, catalog.ErrFull)
		}
		r.NoError(r.World.Barrier(ctx))
		end()
	})
}

func TestBroadcastBufferStaysUntilAllHaveFreedIt(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		c, end := publish(ctx, r, catalog.Topology{}, 1, device.About{Kind: device.DAX, Node: -1}, catalog.Rules{})
		root := r.N - 1
		var mine catalog.Lease
		var err error
		if r.Me == root {
			mine, err = c.Allocate(ctx, 100, catalog.Rules{})
			r.NoError(err)
			b, err := c.Open(mine)
			r.NoError(err)
			r.NoError(b.Window.Put(ctx, b.Target, b.Index, []byte("one for many")))
			r.NoError(b.Window.Flush(ctx, b.Target))
		}
		l, err := c.Broadcast(ctx, root, mine)
		r.NoError(err)
		if r.Me == root {
			r.NoError(c.Free(ctx, l))
		}
		r.NoError(r.World.Barrier(ctx))
		b, err := c.Open(l)
		r.NoError(err)
		got := make([]byte, 12)
		r.NoError(b.Window.Get(ctx, b.Target, b.Index, got))
		r.Equal("one for many", string(got))
		r.NoError(r.World.Barrier(ctx))
		if r.Me != root {
			r.NoError(c.Free(ctx, l))
		}
		r.NoError(r.World.Barrier(ctx))
		r.ErrorIs(c.Hold(ctx, l), catalog.ErrLease)
		_, err = c.Broadcast(ctx, root, catalog.Lease{})
		r.ErrorIs(err, catalog.ErrLease, "at all ranks")
		_, err = c.Decode([]byte("no lease"))
		r.ErrorIs(err, catalog.ErrLease)
		end()
	})
}

// Rank 0 and rank 1 share a host with the recorded devices; rank 2 is on another.
func TestFindSortsByDistanceAndObeysRules(t *testing.T) {
	topo := recorded(t)
	runOn(t, topo, "AuthenticAMD", 23)
	for _, provider := range []string{"auto", "tcp"} {
		config := testjob.Config{Provider: provider, Ranks: 3, Hosts: "aab"}
		config.Run(t, func(ctx context.Context, r *testjob.Rank) {
			about := []device.About{{Kind: device.BAR, Device: diskWithMemory, Node: -1}, {Kind: device.DAX, Node: -1}, {Kind: device.BAR, Device: diskElsewhere, Node: -1}}[r.Me]
			c, end := publish(ctx, r, topo, 2, about, catalog.Rules{Quota: page})
			var ranks []int
			for _, m := range c.Find(page, catalog.Rules{}, diskBeside) {
				ranks = append(ranks, m.Offer.Rank)
			}
			if r.Me == 2 { // its own device is the nearest
				r.Equal([]int{2, 0, 1}, ranks)
				m := c.Find(page, catalog.Rules{Farthest: catalog.HostBridge}, diskElsewhere)
				r.Len(m, 1)
				r.Equal(catalog.Itself, m[0].Way)
			} else {
				r.Equal([]int{0, 1, 2}, ranks)
				m := c.Find(page, catalog.Rules{Farthest: catalog.Switch}, diskWithMemory, diskBeside)
				r.Len(m, 1)
				r.Equal(4, m[0].Distance, "the sum over both clients")
				r.Equal(catalog.Switch, m[0].Way)
				r.Len(c.Find(page, catalog.Rules{Kinds: []device.Kind{device.DAX}}, diskBeside), 1)
				_, err := c.Allocate(ctx, page, catalog.Rules{Farthest: catalog.Switch}, diskElsewhere)
				r.ErrorIs(err, catalog.ErrNone)
			}
			r.Empty(c.Find(3*page, catalog.Rules{}, diskBeside))
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 0 { // quotas of a page each: the third is on the other host
				for want := range 3 {
					l, err := c.Allocate(ctx, page, catalog.Rules{}, diskBeside)
					r.NoError(err)
					r.Equal(want, l.Rank)
					b, err := c.Open(l)
					r.NoError(err)
					r.NoError(b.Window.Put(ctx, b.Target, b.Index, []byte{7}))
				}
				_, err := c.Allocate(ctx, page, catalog.Rules{}, diskBeside)
				r.ErrorIs(err, catalog.ErrFull)
			}
			r.NoError(r.World.Barrier(ctx))
			end()
		})
	}
}

func TestOfferWithoutMemoryIsRefusedAtAllRanks(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		var offers []catalog.Offer
		if r.Me == 1 {
			offers = append(offers, catalog.Offer{Name: "nothing"})
		}
		_, err := catalog.Publish(ctx, r.World, catalog.Topology{}, offers...)
		r.ErrorIs(err, catalog.ErrOffer)
		c, err := catalog.Publish(ctx, r.World, catalog.Topology{})
		r.NoError(err)
		_, err = c.Allocate(ctx, 1, catalog.Rules{})
		r.ErrorIs(err, catalog.ErrNone)
		r.Empty(c.Offers())
		r.NoError(c.Close(ctx))
	})
}

// One rank's goroutines and other ranks allocate at the same time: each granule has one lease.
func TestConcurrentAllocationsGetDifferentMemory(t *testing.T) {
	var taken [3][16]atomic.Int32
	testjob.Config{Provider: "loop", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		c, end := publish(ctx, r, catalog.Topology{}, 16, device.About{Kind: driver.KindHeap, Node: -1}, catalog.Rules{})
		done := make(chan error, 4)
		for range cap(done) {
			go func() {
				for range 4 {
					l, err := c.Allocate(ctx, page, catalog.Rules{})
					if err != nil {
						done <- err
						return
					}
					taken[l.Rank][l.Offset/page].Add(1)
				}
				done <- nil
			}()
		}
		for range cap(done) {
			r.NoError(<-done)
		}
		r.NoError(r.World.Barrier(ctx))
		end()
	})
	for rank := range taken {
		for i := range taken[rank] {
			if n := taken[rank][i].Load(); n != 1 {
				t.Errorf("page %d of rank %d has %d leases", i, rank, n)
			}
		}
	}
}
