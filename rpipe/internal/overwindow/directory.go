package overwindow

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// Two ends over a pool find each other in the directories of their ranks. An end
// that does not find its peer leaves word there, looks again, and waits for news:
//
//	requester                     owner
//	put a request     --------->  slot of the requester
//	get the directory <---------  nothing yet
//	wait for news                 opens an end: entry, then takes the request
//	                  <---------  news + 1
//	get the directory <---------  found
//
// Either the requester's second look finds the entry, or the owner finds the request:
// both store before they load, with a flush between.

// publish makes an end known to the rank that looks for it.
func (c *layer) publish(ctx context.Context, place, peer int, hash uint64) error {
	c.entry(place).Store(hash)
	requested, err := c.w.ResetNotify(firstRequest+peer, 0)
	if err != nil || requested == 0 {
		return err
	}
	return c.w.PutNotify(ctx, peer, 0, nil, window.Signal{Slot: newsSlot, Add: true, Value: 1})
}

// request has the peer tell this rank of the next end that opens there for it.
func (c *layer) request(ctx context.Context, peer int) error {
	err := c.w.PutNotify(ctx, peer, 0, nil, window.Signal{Slot: firstRequest + c.team.Rank, Value: 1})
	if err != nil {
		return err
	}
	return c.w.Flush(ctx, peer)
}

// find returns the place of an end at the peer, -1 if it is not there (yet).
func (c *layer) find(ctx context.Context, peer int, hash uint64) (int, error) {
	mem, err := c.shared(ctx, peer)
	if err != nil {
		return -1, err
	}
	words := make([]byte, driver.WholeRead)
	for place := 0; place < c.ends; place += len(words) / 8 {
		if rest := 8 * (c.ends - place); rest < len(words) {
			words = words[:rest]
		}
		if err := c.fetch(ctx, peer, mem, 8*place, words); err != nil {
			return -1, err
		}
		for i := 0; i < len(words); i += 8 {
			if binary.NativeEndian.Uint64(words[i:]) == hash {
				return place + i/8, nil
			}
		}
	}
	return -1, nil
}

// await finds the place of an end at the peer, waiting until it is open. It returns
// fabric.ErrLeft if the peer's rank leaves first.
func (c *layer) await(ctx context.Context, peer int, hash uint64) (int, error) {
	for {
		news := c.value(newsSlot)
		if err := c.request(ctx, peer); err != nil {
			return -1, err
		}
		place, err := c.find(ctx, peer, hash)
		if place >= 0 || err != nil {
			return place, err
		}
		_, _, err = c.w.WaitNotify(ctx, window.Until{Slots: []int{newsSlot}, Condition: window.NotEqual, Value: news, From: []int{peer}})
		if err != nil {
			return -1, err
		}
	}
}

// shared returns the peer's part of the window where it can be loaded and stored
// directly, else nil.
func (c *layer) shared(ctx context.Context, peer int) ([]byte, error) {
	mem, err := c.w.Shared(ctx, peer)
	if errors.Is(err, window.ErrNotShared) {
		return nil, nil
	}
	return mem, err
}

// fetch gets bytes of the peer, whose shared memory is mem if there is any, and
// aligned words whole.
func (c *layer) fetch(ctx context.Context, peer int, mem []byte, from int, dst []byte) error {
	if mem == nil {
		return c.w.Get(ctx, peer, from, dst)
	}
	pipe.Load(dst, mem, from)
	return nil
}

// Appear implements pipe.Directory. An end whose peer is dead by then is as good as before.
func (m *memory) Appear(ctx context.Context) error {
	err := m.verdict(m.c.publish(ctx, m.place, m.ends.Peer, m.hashes[0]))
	if errors.Is(m.fate(), runtime.ErrRankDead) {
		return nil
	}
	return err
}

// Find implements pipe.Directory.
func (m *memory) Find(ctx context.Context, wait bool) (bool, error) {
	c, peer := m.c, m.ends.Peer
	place, err := m.locate(ctx, wait)
	if place < 0 || err != nil {
		return false, m.verdict(err)
	}
	r := &farPlace{data: c.dataOf(place), slot: c.slotsOf(place)}
	if r.mem, err = c.shared(ctx, peer); err == nil {
		r.queue, err = c.team.Peer(ctx, c.team.Members[peer])
	}
	m.theirs.Store(r)
	return err == nil, m.verdict(err)
}

// Reach implements pipe.Directory.
func (m *memory) Reach() (*pipe.Far, error) {
	r := m.theirs.Load()
	far := &pipe.Far{Queue: r.queue}
	if r.mem != nil {
		far.Data = r.mem[r.data:][:m.ends.Theirs.Data]
	}
	return far, nil
}

// locate returns the place of the peer's end. Without wait it returns -1 while there is none. With
// wait it waits until the peer has opened one, or its rank has left.
func (m *memory) locate(ctx context.Context, wait bool) (place int, err error) {
	c, peer, hash := m.c, m.ends.Peer, m.hashes[1]
	if wait {
		place, err = c.await(ctx, peer, hash)
	} else if place, err = c.find(ctx, peer, hash); place < 0 && err == nil && peer != c.team.Rank {
		err = c.team.Left(c.team.Members[peer])
	}
	if !errors.Is(err, fabric.ErrLeft) {
		return place, err
	}
	// The peer's rank opens no more ends. One that it opened before is there.
	if place, err = c.find(ctx, peer, hash); place < 0 && err == nil {
		rank := c.team.Members[peer]
		c.team.Abandon(rank, m.ends.Theirs.Name)
		if wait {
			err = c.team.Presence(rank, m.ends.Theirs.Name)
		}
	}
	return place, err
}

// Disown implements pipe.Directory.
func (m *memory) Disown(ctx context.Context) bool {
	word := window.Signal{Slot: m.theirs.Load().slot + m.c.flags, Value: 1}
	return m.c.w.PutNotify(ctx, m.ends.Peer, 0, nil, word) == nil
}
