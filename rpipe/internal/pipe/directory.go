package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// Two ends over a carrier find each other in the directories of their ranks. An end
// that does not find its peer leaves word there, looks again, and waits for news:
//
//	asker                         owner
//	put a knock       --------->  slot of the asker
//	get the directory <---------  nothing yet
//	wait for news                 opens an end: entry, then takes the knock
//	                  <---------  news + 1
//	get the directory <---------  found
//
// Either the asker's second look finds the entry, or the owner finds the knock:
// both store before they load, with a flush between.

// publish makes an end known to the rank that looks for it.
func (c *Carrier) publish(ctx context.Context, berth, peer int, hash uint64) error {
	c.entry(berth).Store(hash)
	knocked, err := c.w.ResetNotify(firstKnock+peer, 0)
	if err != nil || knocked == 0 {
		return err
	}
	return c.w.PutNotify(ctx, peer, 0, nil, window.Signal{Slot: newsSlot, Add: true, Value: 1})
}

// knock has the peer tell this rank of the next end that opens there for it.
func (c *Carrier) knock(ctx context.Context, peer int) error {
	err := c.w.PutNotify(ctx, peer, 0, nil, window.Signal{Slot: firstKnock + c.team.Rank, Value: 1})
	if err != nil {
		return err
	}
	return c.w.Flush(ctx, peer)
}

// find returns the berth of an end at the peer, -1 if it is not there (yet).
func (c *Carrier) find(ctx context.Context, peer int, hash uint64) (int, error) {
	mem, err := c.shared(ctx, peer)
	if err != nil {
		return -1, err
	}
	words := make([]byte, driver.WholeRead)
	for berth := 0; berth < c.Ends; berth += len(words) / 8 {
		if rest := 8 * (c.Ends - berth); rest < len(words) {
			words = words[:rest]
		}
		if err := c.fetch(ctx, peer, mem, 8*berth, words); err != nil {
			return -1, err
		}
		for i := 0; i < len(words); i += 8 {
			if native.Uint64(words[i:]) == hash {
				return berth + i/8, nil
			}
		}
	}
	return -1, nil
}

// Await finds the berth of an end at the peer, waiting until it is open.
func (c *Carrier) Await(ctx context.Context, peer int, hash uint64) (int, error) {
	for {
		news := c.slot(newsSlot)
		if err := c.knock(ctx, peer); err != nil {
			return -1, err
		}
		berth, err := c.find(ctx, peer, hash)
		if berth >= 0 || err != nil {
			return berth, err
		}
		_, _, err = c.w.WaitNotify(ctx, window.Until{Slots: []int{newsSlot}, Condition: window.NotEqual, Value: news})
		if err != nil {
			return -1, err
		}
	}
}

// shared returns the peer's part of the window where it can be loaded and stored
// directly, else nil.
func (c *Carrier) shared(ctx context.Context, peer int) ([]byte, error) {
	mem, err := c.w.Shared(ctx, peer)
	if errors.Is(err, window.ErrNotShared) {
		return nil, nil
	}
	return mem, err
}

// fetch gets bytes of the peer, whose shared memory is mem if there is any, and
// aligned words whole.
func (c *Carrier) fetch(ctx context.Context, peer int, mem []byte, from int, dst []byte) error {
	switch {
	case mem == nil:
		return c.w.Get(ctx, peer, from, dst)
	case from%8 == 0 && len(dst)%8 == 0:
		atomics.LoadWords(dst, mem[from:from+len(dst)])
	default:
		copy(dst, mem[from:])
	}
	return nil
}
