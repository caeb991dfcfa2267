package catalog

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/window"
)

// A Lease is a range of published memory that was handed out.
type Lease struct {
	Rank   int // the owner
	Number int // of the offer
	Offset int // in the offer, in bytes
	Len    int
	entry  int
	age    uint64
}

// leaseSize is the size of an encoded lease, in bytes.
const leaseSize = 48

// Append appends the lease as 48 bytes to b, for [Decode] at any rank. Kind: local.
func (l Lease) Append(b []byte) []byte {
	for _, v := range []uint64{uint64(l.Rank), uint64(l.Number), uint64(l.Offset), uint64(l.Len), uint64(l.entry), l.age} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Decode is the inverse of [Lease.Append]. It returns [ErrLease] if the bytes are no lease on an offer of c.
// Kind: local.
func (c *Catalog) Decode(b []byte) (Lease, error) {
	if len(b) != leaseSize {
		return Lease{}, fail("Decode", fmt.Errorf("%d bytes: %w", len(b), ErrLease))
	}
	v := func(i int) int { return int(binary.LittleEndian.Uint64(b[i*8:])) }
	l := Lease{Rank: v(0), Number: v(1), Offset: v(2), Len: v(3), entry: v(4), age: uint64(v(5))}
	_, err := c.offer(l)
	return l, fail("Decode", err)
}

// offer returns the offer of a lease, which must lie in it.
func (c *Catalog) offer(l Lease) (*Published, error) {
	for i := range c.offers {
		if o := &c.offers[i]; o.Rank == l.Rank && o.Number == l.Number && l.Offset >= 0 && l.Len > 0 && l.Offset <= o.Size && l.Len <= o.Size-l.Offset &&
			uint(l.entry) < entries && l.age != 0 {
			return o, nil
		}
	}
	return nil, fmt.Errorf("rank %d, offer %d, %d bytes at %d: %w", l.Rank, l.Number, l.Len, l.Offset, ErrLease)
}

// An entry of the books, in words.
const (
	entryOffset = iota
	entryLen    // 0: the entry is free
	entryHolds
	entryAge // of its present or last lease
	entryWords
)

const (
	entries   = 64 // leases on one offer at a time
	bookWords = entries * entryWords
	granule   = 4096
)

// Allocate takes n bytes, rounded up to whole pages of 4096, of the nearest offer that satisfies the rules and
// has room. The content stays. It returns [ErrNone] if Find finds nothing, and [ErrFull]
// if none of the offers has room or one of its 64 entries free. An owner that is gone counts as full. The
// caller has the one hold on the lease. Kind: one-sided.
func (c *Catalog) Allocate(ctx context.Context, n int, rules Rules, clients ...string) (Lease, error) {
	if n <= 0 || n > 1<<62 {
		return Lease{}, fail("Allocate", fmt.Errorf("%d bytes: %w", n, window.ErrRange))
	}
	n = (n + granule - 1) &^ (granule - 1)
	matches := c.Find(n, rules, clients...)
	if len(matches) == 0 {
		return Lease{}, fail("Allocate", fmt.Errorf("%w: %d bytes, %+v, clients %v, %d offers", ErrNone, n, rules, clients, len(c.offers)))
	}
	var errs []error
	for _, m := range matches {
		l, err := c.allocateOf(ctx, m.Offer, n)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return Lease{}, fail("Allocate", err)
		}
		errs = append(errs, fmt.Errorf("%s of rank %d: %w", m.Offer.Name, m.Offer.Rank, err))
	}
	return Lease{}, fail("Allocate", fmt.Errorf("%w: %d bytes: %w", ErrFull, n, errors.Join(errs...)))
}

// allocateOf leases n bytes of one published memory, by a change of its book. It keeps the owner's
// quota.
func (c *Catalog) allocateOf(ctx context.Context, o *Published, n int) (l Lease, err error) {
	err = c.change(ctx, o.Rank, o.Number, func(book []uint64) (int, error) {
		limit := o.Size
		if o.Rules.Quota > 0 {
			limit = min(limit, o.Rules.Quota)
		}
		entry, at, used, err := fit(book, o.Size, n)
		switch {
		case err != nil:
			return 0, err
		case entry < 0:
			return 0, fmt.Errorf("all %d entries are in use", entries)
		case at < 0 || n > limit-used:
			return 0, fmt.Errorf("%d bytes of %d are in use", used, limit)
		}
		e := book[entry*entryWords:][:entryWords]
		e[entryOffset], e[entryLen], e[entryHolds], e[entryAge] = uint64(at), uint64(n), 1, e[entryAge]+1
		l = Lease{Rank: o.Rank, Number: o.Number, Offset: at, Len: n, entry: entry, age: e[entryAge]}
		return entry, nil
	})
	return l, err
}

// fit finds a free entry and the first free range of n bytes; each is -1 if there is none. It counts the
// bytes in use. It returns ErrBooks if an entry has bytes beyond the offer.
func fit(book []uint64, size, n int) (entry, at, used int, err error) {
	entry = -1
	var taken [][2]int
	for i := range entries {
		e := book[i*entryWords:][:entryWords]
		if e[entryLen] == 0 {
			if entry < 0 {
				entry = i
			}
			continue
		}
		if e[entryOffset] > uint64(size) || e[entryLen] > uint64(size)-e[entryOffset] {
			return -1, -1, 0, fmt.Errorf("entry %d: %d bytes at %d of %d: %w", i, e[entryLen], e[entryOffset], size, ErrBooks)
		}
		taken = append(taken, [2]int{int(e[entryOffset]), int(e[entryLen])})
		used += int(e[entryLen])
	}
	slices.SortFunc(taken, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	for _, t := range taken {
		if t[0]-at >= n {
			return entry, at, used, nil
		}
		at = max(at, t[0]+t[1])
	}
	if n > size-at {
		at = -1
	}
	return entry, at, used, nil
}

// change reads the book of an offer, changes one entry and writes it, under the lock of the owner's books.
func (c *Catalog) change(ctx context.Context, owner, number int, f func(book []uint64) (entry int, err error)) (err error) {
	if c.books == nil {
		return window.ErrFreed
	}
	held, err := c.books.Lock(ctx, owner, window.Exclusive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock(ctx)) }()
	book := make([]uint64, bookWords)
	if err := c.books.Get(ctx, owner, number*bookWords, book); err != nil {
		return err
	}
	entry, err := f(book)
	if err != nil {
		return err
	}
	at := entry * entryWords
	return c.books.Put(ctx, owner, number*bookWords+at, book[at:at+entryWords])
}

// hold adds by to the holds of a lease.
func (c *Catalog) hold(ctx context.Context, l Lease, by int) error {
	if _, err := c.offer(l); err != nil {
		return err
	}
	return c.change(ctx, l.Rank, l.Number, func(book []uint64) (int, error) {
		e := book[l.entry*entryWords:][:entryWords]
		if e[entryAge] != l.age || e[entryOffset] != uint64(l.Offset) || e[entryLen] != uint64(l.Len) {
			return 0, fmt.Errorf("%d bytes at %d: %w: it was freed", l.Len, l.Offset, ErrLease)
		}
		if e[entryHolds] += uint64(by); e[entryHolds] == 0 {
			e[entryLen] = 0
		}
		return l.entry, nil
	})
}

// Hold takes one more hold on a lease: its memory stays until that is freed, too. It returns [ErrLease] if the
// lease was freed. Kind: one-sided.
func (c *Catalog) Hold(ctx context.Context, l Lease) error { return fail("Hold", c.hold(ctx, l, 1)) }

// Free frees one hold on a lease. The last one gives the memory back. The caller has completed its
// operations on the memory ([window.Window.Flush]). It returns [ErrLease] if the lease was freed before.
// Kind: one-sided.
func (c *Catalog) Free(ctx context.Context, l Lease) error { return fail("Free", c.hold(ctx, l, -1)) }

// A Buffer is the memory of a lease: l.Len elements of Window at Target from Index on. All operations of windows
// apply to it, also from other hosts.
type Buffer struct {
	Window        *window.Window[byte]
	Target, Index int
}

// Open returns the memory of a lease. Kind: local.
func (c *Catalog) Open(l Lease) (Buffer, error) {
	if _, err := c.offer(l); err != nil {
		return Buffer{}, fail("Open", err)
	}
	if l.Number >= len(c.windows) {
		return Buffer{}, fail("Open", window.ErrFreed)
	}
	return Buffer{c.windows[l.Number], l.Rank, l.Offset}, nil
}

// Broadcast gives all ranks the lease of the rank root, and each but root a hold on it: one buffer for many. l counts at
// root only. If root's lease is unusable, all ranks get [ErrLease]. Kind: collective.
func (c *Catalog) Broadcast(ctx context.Context, root int, l Lease) (Lease, error) {
	if root < 0 || root >= c.team.Size() {
		return Lease{}, fail("Broadcast", fmt.Errorf("root %d: %w", root, window.ErrRange))
	}
	all, err := c.team.Exchange(ctx, l.Append(nil))
	if err != nil {
		return Lease{}, fail("Broadcast", err)
	}
	if l, err = c.Decode(all[root]); err != nil {
		return Lease{}, fail("Broadcast", err)
	}
	var mine error
	if c.team.Rank() != root {
		mine = c.hold(ctx, l, 1)
	}
	// root keeps its hold until all have theirs.
	if err := c.team.Barrier(ctx); err != nil || mine != nil {
		return Lease{}, fail("Broadcast", errors.Join(mine, err))
	}
	return l, nil
}
