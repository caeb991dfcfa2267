package pipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/window"
)

// A WindowLink is a link over a pool's window: a place at each end. Flags are
// notification slots; one more slot of the place is the word of being disowned.
type WindowLink struct {
	c      *Pool
	peer   int       // of the peer, in the pool's team
	hashes [2]uint64 // of the names, mine and theirs
	sizes  [2]int    // of the data, mine and theirs
	twice  int       // blocks above so many bytes leave as two puts
	place  int       // mine
	mine   []byte    // the place's memory
	staged []byte    // the stage, behind the data unless it is shared
	shared *FanStage // owns that memory if several ends use it
	Slots  []int     // the place's: flags, then the word of being disowned
	theirs atomic.Pointer[farPlace]
	misfit *farPlace // the peer, if its card was refused

	under []window.Request // puts from the stage that are under way
	SummaryUpdate
}

// A farPlace is the peer's.
type farPlace struct {
	data int          // where its memory begins
	slot int          // its first
	mem  []byte       // all of the peer's memory, where it is mapped
	peer *fabric.Peer // that the window's puts pass
}

// bulkAbove is where data and flag part: a put of more is not copied on its way,
// and is under way while the next one begins.
const bulkAbove = 4096

// newWindowLink makes this end of a link in a free place of the pool, whose data
// prepare fills. The other end finds it once it appears.
func newWindowLink(c *Pool, peer int, mine, theirs LinkEnd, stage, fma int, prepare func(data []byte)) (*WindowLink, error) {
	if mine.Data+stage > c.room() || mine.Flags > c.flags() {
		return nil, fmt.Errorf("%w: an end takes %d bytes and %d flags, a place of the pool has %d and %d; give OverWindow the pipe's options",
			ErrTooLarge, mine.Data+stage, mine.Flags, c.room(), c.flags())
	}
	place, err := c.Take()
	if err != nil {
		return nil, err
	}
	l := &WindowLink{c: c, peer: peer, hashes: [2]uint64{nameHash(mine.Name), nameHash(theirs.Name)}, sizes: [2]int{mine.Data, theirs.Data}, twice: bulkAbove, place: place}
	if fma >= 0 {
		l.twice = fma
	}
	l.mine = c.w.Local()[c.dataOf(place):c.dataOf(place+1)]
	l.staged = l.mine[mine.Data:]
	for slot := c.slotsOf(place); slot < c.slotsOf(place+1); slot++ {
		l.Slots = append(l.Slots, slot)
	}
	prepare(l.Local())
	return l, nil
}

// Appear enters this end into the directory. An end whose other one is gone by then
// is as good as before.
func (l *WindowLink) Appear(ctx context.Context) error {
	err := l.c.publish(ctx, l.place, l.peer, l.hashes[0])
	if err != nil && gone(l.Fate()) && !l.c.closed.Load() {
		return nil
	}
	return l.verdict(err)
}

// nameHash returns a directory's number for a name. 0 is no name's number.
func nameHash(name string) uint64 { return max(Hash(name), 1) }

// Local implements Link.
func (l *WindowLink) Local() []byte { return l.mine[:l.sizes[0]] }

// Stage implements Link.
func (l *WindowLink) Stage(n int) ([]byte, error) { return l.staged[:n], nil }

// Flag implements Link.
func (l *WindowLink) Flag(i int) uint64 { return l.c.value(l.Slots[i : i+1]) }

// Connect implements Link.
func (l *WindowLink) Connect(ctx context.Context, wait bool, check func(card []byte) error) (bool, error) {
	find := l.c.find
	if wait {
		find = l.c.Await
	}
	place, err := find(ctx, l.peer, l.hashes[1])
	if place < 0 || err != nil {
		return false, l.verdict(err)
	}
	r := &farPlace{data: l.c.dataOf(place), slot: l.c.slotsOf(place)}
	if r.mem, err = l.c.shared(ctx, l.peer); err != nil {
		return false, l.verdict(err)
	}
	if r.peer, err = l.c.team.Peer(ctx, l.c.team.Members[l.peer]); err != nil {
		return false, l.verdict(err)
	}
	card := make([]byte, cardState)
	if err := l.c.fetch(ctx, l.peer, r.mem, r.data, card); err != nil {
		return false, l.verdict(err)
	}
	if err := check(card); err != nil {
		l.misfit = r
		return false, err
	}
	l.theirs.Store(r)
	return true, nil
}

// Remote implements Link.
func (l *WindowLink) Remote() []byte {
	if r := l.theirs.Load(); r != nil && r.mem != nil {
		return r.mem[r.data:][:l.sizes[1]]
	}
	return nil
}

// Queue implements Link.
func (l *WindowLink) Queue() *fabric.Peer { return l.theirs.Load().peer }

// PutFlag implements Link.
func (l *WindowLink) PutFlag(ctx context.Context, to int, src []byte, flag int, value uint64) error {
	r := l.theirs.Load()
	return l.verdict(l.c.w.PutNotify(ctx, l.peer, r.data+to, src, window.Signal{Slot: r.slot + flag, Value: value}))
}

// PutLast: a window's signals never overtake each other.
func (l *WindowLink) PutLast(ctx context.Context, flag int, value uint64) error {
	return l.PutFlag(ctx, 0, nil, flag, value)
}

// PutStaged waits for no bulk put, since the stage stays as it is: if it waited
// and gave up, the flag might be on its way all the same.
func (l *WindowLink) PutStaged(ctx context.Context, to, from, n, flag int, value uint64, twice bool) error {
	src := l.staged[from:][:n]
	if !twice && n <= l.twice {
		return l.PutFlag(ctx, to, src, flag, value)
	}
	if err := l.Settle(window.Request.Done); err != nil {
		return l.verdict(err)
	}
	req, err := l.c.w.StartPut(ctx, l.peer, l.theirs.Load().data+to, src)
	if err != nil {
		return l.verdict(err)
	}
	l.under = append(l.under, req)
	if err := l.c.w.Order(l.peer); err != nil {
		return l.verdict(err)
	}
	return l.PutFlag(ctx, 0, nil, flag, value)
}

// Settle takes leave of puts that were under way.
func (l *WindowLink) Settle(which func(window.Request) bool) (err error) {
	l.under = slices.DeleteFunc(l.under, func(r window.Request) bool {
		if !which(r) {
			return false
		}
		err = errors.Join(err, r.Wait(context.Background()))
		return true
	})
	return err
}

// OpenCounter: a group is the slot of its count.
func (l *WindowLink) OpenCounter(ctx context.Context, _ uint32, group int) error {
	if !l.c.counts(group) {
		return errNoSummary
	}
	peer, err := l.c.team.Peer(ctx, l.c.team.Members[l.peer])
	if err != nil {
		return l.verdict(err)
	}
	l.SummaryUpdate.Open(peer, func(ctx context.Context, n uint64) error {
		return l.verdict(l.c.w.PutNotify(ctx, l.peer, 0, nil, window.Signal{Slot: group, Add: true, Value: n}))
	})
	return nil
}

// Put implements Link.
func (l *WindowLink) Put(ctx context.Context, to int, src []byte) error {
	err := l.c.w.Put(ctx, l.peer, l.theirs.Load().data+to, src)
	if err == nil {
		err = l.c.w.Order(l.peer)
	}
	return l.verdict(err)
}

// Get implements Link.
func (l *WindowLink) Get(ctx context.Context, from int, dst []byte) error {
	r := l.theirs.Load()
	return l.verdict(l.c.fetch(ctx, l.peer, r.mem, r.data+from, dst))
}
