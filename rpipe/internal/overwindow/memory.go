package overwindow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A memory is peer memory in a pool's window: a place at each end. Flags are notification
// slots; one more slot of the place is the flag pipe.Disowned.
type memory struct {
	c      *layer
	ends   pipe.Ends
	hashes [2]uint64 // of the names, mine and theirs
	place  int       // mine
	theirs atomic.Pointer[farPlace]
	under  []window.Request // lent puts that are under way
}

// A farPlace is the peer's.
type farPlace struct {
	data  int          // where its memory begins
	slot  int          // its first
	mem   []byte       // all of the peer's memory, where it is mapped
	queue *fabric.Peer // the connection to the peer's rank
}

// bulkAbove is where data and flag part: a lent put of more is not copied on its way,
// and is under way while the next one begins.
const bulkAbove = 4096

// Link implements pipe.Layer: it takes a free place of the pool.
func (c *layer) Link(_ context.Context, e *pipe.Ends) (pipe.Link, error) {
	size := e.Mine.Data + e.Stage
	switch {
	case c.team.Name != e.Team:
		return pipe.Link{}, fmt.Errorf("%w: the pool is one of team %s", runtime.ErrTeam, c.team.Name)
	case size > c.room || e.Mine.Flags > c.flags:
		return pipe.Link{}, fmt.Errorf("%w: an end takes %d bytes and %d flags, a place of the pool has %d and %d; give OverWindow the pipe's options",
			pipe.ErrTooLarge, size, e.Mine.Flags, c.room, c.flags)
	}
	place, err := c.takePlace()
	if err != nil {
		return pipe.Link{}, err
	}
	m := &memory{c: c, ends: *e, place: place, hashes: [2]uint64{nameHash(e.Mine.Name), nameHash(e.Theirs.Name)}}
	mem := c.w.Local()[c.dataOf(place):c.dataOf(place+1)]
	e.Prepare(mem[:e.Mine.Data])
	return pipe.Link{PeerMemory: m, Directory: m, Home: pipe.Home{Data: mem[:e.Mine.Data], Stage: mem[e.Mine.Data:]}}, nil
}

// nameHash returns a directory's number for a name. 0 is no name's number.
func nameHash(name string) uint64 { return max(pipe.Hash(name), 1) }

// Flag implements pipe.PeerMemory.
func (m *memory) Flag(i int) uint64 {
	if i == pipe.Disowned {
		i = m.c.flags
	}
	return m.c.value(m.c.slotsOf(m.place) + i)
}

// Put implements pipe.PeerMemory. It waits for no bulk put that is lent: if it waited and
// gave up, the flag might be on its way all the same.
func (m *memory) Put(ctx context.Context, p fabric.Put) error {
	r, src, peer := m.theirs.Load(), p.Body.Mem, m.ends.Peer
	tells := p.Tell == fabric.TellByFlag
	if p.Lent && (!tells || bulk(p.Body.Path, len(src))) {
		if err := m.lend(ctx, r.data+p.Body.At, src); err != nil {
			return m.verdict(err)
		}
		src = nil
	}
	switch {
	case tells:
		slot := r.slot + (p.Flag.Offset-m.ends.Theirs.Data)/8
		return m.verdict(m.c.w.PutNotify(ctx, peer, r.data+p.Body.At, src, window.Signal{Slot: slot, Value: p.Flag.Value, Add: p.Flag.Add}))
	case len(src) == 0:
		return nil
	}
	err := m.c.w.Put(ctx, peer, r.data+p.Body.At, src)
	if err == nil {
		err = m.c.w.Order(peer)
	}
	return m.verdict(err)
}

// bulk reports whether n bytes leave from where they lie.
func bulk(path fabric.Path, n int) bool {
	return path == fabric.Bulk || path == fabric.Auto && n > bulkAbove
}

// lend starts a put of src, ahead of all that follows.
func (m *memory) lend(ctx context.Context, at int, src []byte) error {
	if err := m.settle(window.Request.Done); err != nil {
		return err
	}
	req, err := m.c.w.StartPut(ctx, m.ends.Peer, at, src)
	if err != nil {
		return err
	}
	m.under = append(m.under, req)
	return m.c.w.Order(m.ends.Peer)
}

// settle takes leave of puts that were under way.
func (m *memory) settle(which func(window.Request) bool) (err error) {
	m.under = slices.DeleteFunc(m.under, func(r window.Request) bool {
		if !which(r) {
			return false
		}
		err = errors.Join(err, r.Wait(context.Background()))
		return true
	})
	return err
}

// Get implements pipe.PeerMemory.
func (m *memory) Get(ctx context.Context, from int, dst []byte) error {
	r := m.theirs.Load()
	return m.verdict(m.c.fetch(ctx, m.ends.Peer, r.mem, r.data+from, dst))
}

// NewGetting implements pipe.PeerMemory.
func (m *memory) NewGetting() pipe.Getting { return &getting{memory: m} }

// A getting is a get from a peer that is not mapped.
type getting struct {
	memory *memory
	window.Request
}

// Start implements pipe.Getting.
func (g *getting) Start(ctx context.Context, from int, dst []byte) (err error) {
	m := g.memory
	g.Request, err = m.c.w.StartGet(ctx, m.ends.Peer, m.theirs.Load().data+from, dst)
	return m.verdict(err)
}

// Wait implements pipe.Getting.
func (g *getting) Wait(ctx context.Context) error { return g.memory.verdict(g.Request.Wait(ctx)) }

// Flush implements pipe.PeerMemory.
func (m *memory) Flush(ctx context.Context) error {
	return m.verdict(m.c.w.Flush(ctx, m.ends.Peer))
}

// Release implements pipe.PeerMemory. If the peer's rank is dead, the place stays taken, since a
// put that was on its way may still arrive: the pool loses a place for each such end.
func (m *memory) Release() error {
	err := m.settle(func(window.Request) bool { return true })
	if m.fate() != nil {
		return err
	}
	return errors.Join(err, m.c.givePlace(m.place))
}

// fate says how the peer ended, nil while it is well.
func (m *memory) fate() error {
	if err := m.c.Err(); err != nil {
		return err
	}
	return m.c.team.Fate(m.c.team.Members[m.ends.Peer])
}

// verdict returns the fate of the peer in place of a window's error, if the peer is gone.
func (m *memory) verdict(err error) error {
	if err == nil {
		return nil
	}
	if gone := m.fate(); gone != nil {
		return gone
	}
	return m.c.verdict(err)
}
