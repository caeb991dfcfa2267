package pipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// fetches are the blocks of a pull pipe whose writer is not mapped. A nil fetches has none. They
// lie in memory of this end: those that Read has returned, and ahead of Read up to the pipe's width of blocks
// whose bytes are on their way. A call that reads starts the gets of all blocks that have
// been announced and for which there is room. So it waits for a response only if it has
// overtaken them.
//
// Invariant: no get is under way once Close has returned, or once Stop and a call that reads
// at that moment have both returned.
type fetches struct {
	r       *Reader
	mem     []byte
	heap    *rmalloc.Heap // guarded by the mutex, like first and ahead
	ring    []fetch
	first   int // fetch of the next Read
	ahead   int // fetches
	freed   atomic.Uint64
	full    bool   // there was no room for the next block
	freedAt uint64 // freed, as room was looked for
	room    func() bool
}

// A fetch is a block ahead of Read.
type fetch struct {
	flag  rmalloc.Flag
	addr  rmalloc.Addr
	get   Getting // made once
	under bool    // the get is under way
}

// newFetches makes the memory into which the reader of a pull pipe fetches blocks, with its books.
func newFetches(r *Reader) (*fetches, error) {
	heap, err := rmalloc.New(rmalloc.Config{Size: r.Spec.Heap, Blocks: r.Spec.blocks})
	if err != nil {
		return nil, err
	}
	q := &fetches{r: r, heap: heap, ring: make([]fetch, min(r.Spec.Width, r.Spec.blocks))}
	q.room = q.hasRoom
	q.mem, err = r.Stage(r.Spec.Heap)
	return q, err
}

// read returns the next block, which f announces unless one is ahead of Read. If it fails,
// the block is still the next one.
func (q *fetches) read(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error) {
	r := q.r
	if q.ahead == 0 {
		if err := q.add(ctx, f, wait); err != nil {
			return 0, nil, err
		}
		r.have = false
	}
	q.extend()
	next := q.at(0)
	mem, err := q.memory(next), error(nil)
	switch {
	case next.under:
		next.under = false
		err = next.get.Wait(ctx)
	case len(mem) > 0:
		err = r.GetOwn(ctx, q.from(next), mem)
	}
	if err != nil {
		return 0, nil, err
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	q.first, q.ahead = (q.first+1)%len(q.ring), q.ahead-1
	r.wasRead()
	return next.addr, mem, r.freed(rmalloc.Range{Offset: next.flag.Offset, Count: rmalloc.Granules(next.flag.Length)})
}

// at returns the fetch behind i others.
func (q *fetches) at(i int) *fetch { return &q.ring[(q.first+i)%len(q.ring)] }

// memory returns where the bytes of a block go.
func (q *fetches) memory(f *fetch) []byte { return cut(q.mem, f.addr.Offset(), f.flag.Length) }

// from returns from where in the writer's data the bytes of a block come.
func (q *fetches) from(f *fetch) int { return q.r.writerHeap() + f.flag.Offset*rmalloc.Granule }

// extend adds all blocks that the writer has announced and for which there is room. It starts the
// gets that are not under way. A single block stays for GetOwn.
func (q *fetches) extend() {
	r := q.r
	for q.ahead < len(q.ring) {
		taker := r.taker
		f, ok := taker.TakeData(r.Flag(r.place()), r.Spec.Size)
		if !ok || q.tryAdd(f) != nil {
			break
		}
		r.taker = taker
	}
	for i := 0; q.ahead > 1 && i < q.ahead; i++ {
		f := q.at(i)
		if f.under || f.flag.Length == 0 {
			continue
		}
		if f.get == nil {
			f.get = r.NewGetting()
		}
		if f.get.Start(r.Queue().NoWait(), q.from(f), q.memory(f)) != nil {
			return // the queue is full, or the read of the block meets the error
		}
		f.under = true
	}
}

// tryAdd adds a block, if there is room for it.
func (q *fetches) tryAdd(f rmalloc.Flag) error {
	q.r.Mu.Lock()
	defer q.r.Mu.Unlock()
	a, err := q.heap.Alloc(f.Length)
	if err != nil {
		return err
	}
	next := q.at(q.ahead)
	next.flag, next.addr = f, a
	q.ahead++
	return nil
}

// add adds the next block. With wait it waits for room: blocks that were read and not freed
// occupy the memory.
func (q *fetches) add(ctx context.Context, f rmalloc.Flag, wait bool) error {
	r := q.r
	for {
		freedAt := q.freed.Load()
		err := q.tryAdd(f)
		q.full, q.freedAt = errors.Is(err, rmalloc.ErrFull), freedAt
		switch {
		case err == nil || q.full && !wait:
			return err
		case !q.full:
			return r.Breaks(err)
		}
		if err := q.awaitRoom(ctx); err != nil {
			return fmt.Errorf("%w (while blocks that were read and not freed fill this end's memory)", err)
		}
		if err := r.Usable(); err != nil {
			return err
		}
	}
}

// awaitRoom waits for a Free. The writer's rank may have returned meanwhile: its bytes can be
// fetched.
func (q *fetches) awaitRoom(ctx context.Context) (gone error) {
	err := q.r.team.Wait(ctx, func() bool {
		if q.room() {
			return true
		}
		gone = q.r.Fate()
		return gone != nil
	})
	return cmp.Or(err, gone)
}

// hasRoom is true once a Free may have made the room that was looked for.
func (q *fetches) hasRoom() bool {
	return q == nil || !q.full || q.freed.Load() != q.freedAt || q.r.Usable() != nil
}

// held returns the number of blocks that were read and not freed. Called with the mutex held.
func (q *fetches) held() int {
	if q == nil {
		return 0
	}
	return q.heap.Live() - q.ahead
}

// aheadOfRead returns the number of blocks that are taken from the ring, and not read. Called by
// Read alone.
func (q *fetches) aheadOfRead() int {
	if q == nil {
		return 0
	}
	return q.ahead
}

// free ends a block.
func (q *fetches) free(a rmalloc.Addr) error {
	if err := q.heap.Free(a); err != nil {
		return err
	}
	q.freed.Add(1)
	q.r.Ring() // a Read may wait for it
	return nil
}

// giveUp ends all gets that are under way.
func (q *fetches) giveUp() {
	if q == nil {
		return
	}
	for i := range q.ahead {
		if f := q.at(i); f.under {
			f.under = false
			_ = f.get.Wait(NoWait()) // no caller is left to take the error
		}
	}
}
