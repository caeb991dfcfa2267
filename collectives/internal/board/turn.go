package board

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/wait"
)

// allMembers in place of a member means all of them.
const allMembers = -1

// A hold says when a line, a small buffer or a unit is free: when the members that read it
// have left the turn in which they do.
type hold struct {
	until uint64 // when by has left this turn
	by    int    // a member, or allMembers
	pacer int    // a member that calls letPost in each such turn, or allMembers (see paced)
}

// forAll returns the hold of data that all members read in turn k.
func forAll(k uint64) hold { return hold{until: k, by: allMembers, pacer: allMembers} }

// forRoot returns the hold of data that the root alone reads in turn k, as that of all members.
func forRoot(k uint64, root int) hold { return hold{until: k, by: root, pacer: root} }

// holds are those of places, up to the last that was in use: most boards make few turns.
type holds []hold

// at returns the hold of place i.
func (h *holds) at(i uint64) *hold {
	if i >= uint64(len(*h)) {
		h.grow(i)
	}
	return &(*h)[i]
}

func (h *holds) grow(i uint64) { *h = append(*h, make(holds, i+1-uint64(len(*h)))...) }

// next begins a turn.
func (b *Board) next() uint64 {
	b.turn++
	return b.turn
}

// line returns this member's line of turn k once this member may write it. The line is then
// held as h says. It keeps the invariant of paced.
func (b *Board) line(ctx context.Context, k uint64, h hold) (*line, error) {
	held := b.lineHeld.at(k % lines)
	if err := b.free(ctx, *held); err != nil {
		return nil, err
	}
	*held = h
	return &b.peers[b.rank].lines[k%lines], b.paced(ctx, k, h)
}

// space returns n bytes for data of turn k once this member may write them. They lie
// on the line if they fit, else in the small buffer or in units. All three are then held as h
// says.
func (b *Board) space(ctx context.Context, k uint64, h hold, n int) (*line, []byte, error) {
	l, err := b.line(ctx, k, h)
	if err != nil {
		return nil, nil, err
	}
	if n <= inline {
		return l, l.data[:n], nil
	}
	if n <= b.small {
		held := b.smallHeld.at(k % buffers)
		if err := b.free(ctx, *held); err != nil {
			return nil, nil, err
		}
		*held = h
		if err := b.reserve(largeOffset); err != nil {
			return nil, nil, err
		}
		b.use(h.until, 1)
		return l, b.peers[b.rank].small(k, n), nil
	}
	space, err := b.take(ctx, h, n)
	return l, space, err
}

// take returns n bytes of units once this member may write them. The post names them.
func (b *Board) take(ctx context.Context, h hold, n int) ([]byte, error) {
	width := b.widthOf(n)
	first := (b.unit + uint64(width) - 1) &^ (uint64(width) - 1)
	for i := range width {
		held := b.held.at((first + uint64(i)) % buffers)
		if err := b.free(ctx, *held); err != nil {
			return nil, err
		}
		*held = h
	}
	if err := b.reserve(buffersSize(b.large)); err != nil {
		return nil, err
	}
	b.unit, b.latest = first+uint64(width), first%buffers
	b.use(h.until, width)
	return b.peers[b.rank].wide(first, width, n), nil
}

// reserve has the first n bytes of this member's buffers present. Many boards never use any.
func (b *Board) reserve(n int) error {
	if n <= b.present {
		return nil
	}
	mem, err := b.buffers(n)
	if err == nil {
		err = b.addBuffers(b.rank, mem)
	}
	if err == nil {
		b.present = n
	}
	return err
}

// widthOf returns the number of units that n bytes take, a power of two. Data of more than two
// members takes a large buffer if it is longer than unitsMost. Caches would not hold as much of all
// members: with 4, a reduction of 64 KiB took 29 us in units and 23 in large buffers
// (coll_reduce_slices of bench). If the root alone posts, a unit suffices for what it can hold:
// members then run 32 calls ahead, and not 4.
func (b *Board) widthOf(n int) int {
	if b.n > 2 && n > unitsMost && !(b.rootPosts && n <= b.large/widest) {
		return widest
	}
	width := 1
	for width*(b.large/widest) < n {
		width *= 2
	}
	return width
}

// use notes that members need units, or a small buffer, until turn k.
func (b *Board) use(k uint64, width int) {
	b.largeUsed, b.width = max(b.largeUsed, k), max(b.width, width)
}

// free returns once a hold is over.
func (b *Board) free(ctx context.Context, h hold) error {
	switch {
	case h.until <= b.known:
		return nil
	case h.by == allMembers:
		return b.allLeft(ctx, h.until)
	}
	if err := b.reach(ctx, h.by); err != nil {
		return err
	}
	by := &b.peers[h.by]
	if h.until <= by.hasLeft {
		return nil
	}
	if err := b.awaitLeft(ctx, h.by, h.until); err != nil {
		return err
	}
	by.hasLeft = by.left.Load()
	return nil
}

// put posts turn k with data. The caller rings.
func (b *Board) put(ctx context.Context, k uint64, h hold, data []byte) error {
	l, space, err := b.space(ctx, k, h, len(data))
	if err != nil {
		return err
	}
	bulk.Store(space, data)
	b.post(l, k, len(data))
	return nil
}

// post shows this member's line of turn k, and n bytes of data, to all members.
//
// It names units here, behind their data. A reader that polls the line would fetch it between an
// earlier store and that of the turn. The store of the turn would then wait for the line once
// more.
func (b *Board) post(l *line, k uint64, n int) {
	if n > inline && n > b.small {
		binary.NativeEndian.PutUint64(l.data[:], b.latest)
	}
	l.seq, l.chain = b.seq, b.chain
	atomics.StoreRelease(&l.turn, k) // pairs with the load in see, or with the loads behind arrive
}

// ahead fetches this member's line of the turn after k for writing. The other
// members read it long ago and still have it in their caches; taking it from them
// lasts as long as a message. It serves members that other members wait for and
// that do not wait themselves.
func (b *Board) ahead(k uint64) { prefetchWrite(&b.peers[b.rank].lines[(k+1)%lines]) }

// see returns a member's line of turn k once the member has posted it.
func (b *Board) see(ctx context.Context, m int, k uint64) (*line, error) {
	if err := b.reach(ctx, m); err != nil {
		return nil, err
	}
	l := &b.peers[m].lines[k%lines]
	if err := b.wait(ctx, &l.turn, k); err != nil {
		return nil, err
	}
	return l, b.check(l, m, k)
}

// expect polls briefly for line l of turn k if its member waits for this one,
// too: that member is about to post. It does not poll a member that runs ahead:
// reading its line would take it from the cache of its writer.
func (b *Board) expect(l *line, k uint64) {
	if now := l.turn.Load(); now < k && !b.crowded {
		wait.Glance(&l.turn, now)
	}
}

// seeAll returns once all other members have posted turn k.
func (b *Board) seeAll(ctx context.Context, k uint64) error {
	if err := b.letPost(ctx, k); err != nil {
		return err
	}
	for m := range b.peers {
		if m == b.rank {
			continue
		}
		if _, err := b.see(ctx, m, k); err != nil {
			return err
		}
	}
	b.known = max(b.known, k-1)
	return nil
}

// check checks that a member's line of turn k belongs to this call. A member that makes other calls
// may have written the line again.
func (b *Board) check(l *line, m int, k uint64) error {
	if l.chain != b.chain || l.seq != b.seq {
		return &Differs{Member: m, Seq: l.seq, Theirs: l.chain}
	}
	if l.turn.Load() != k {
		return ErrCorrupt
	}
	return nil
}

// got returns the n bytes that a member has posted in turn k, which this member has seen.
func (b *Board) got(m int, k uint64, n int) ([]byte, error) {
	l := &b.peers[m].lines[k%lines]
	if n <= inline {
		return l.data[:n], nil
	}
	p, err := b.withBuffers(m)
	switch {
	case err != nil:
		return nil, err
	case n <= b.small:
		b.use(k, 1)
		return p.small(k, n), nil
	}
	width := b.widthOf(n)
	b.use(k, width)
	return p.wide(binary.NativeEndian.Uint64(l.data[:]), width, n), nil
}

// operands fills in with mine and what all other members have posted in turn k, as many bytes each.
func (b *Board) operands(k uint64, mine []byte) (err error) {
	for m := range b.peers {
		if m == b.rank {
			b.in[m] = mine
		} else if b.in[m], err = b.got(m, k, len(mine)); err != nil {
			return err
		}
	}
	return nil
}

// met notes that all members have entered turn k, and that all know it.
func (b *Board) met(k uint64) {
	b.known = max(b.known, k-1)
	b.told = max(b.told, k-1)
}

// leave ends a turn: this member does not need the other members' posts of it any
// more. Members that wait for that should not have to wait until its next call.
// So leave tells them now and then, in case no gate does: after half the turns that
// members can be ahead. It wakes those that wait.
func (b *Board) leave(ctx context.Context, k uint64) error {
	b.left = k
	if behind := k - b.told; behind >= lines/2 || int(behind)*b.width >= buffers/2 && b.largeUsed > b.told {
		return b.tell(ctx)
	}
	return nil
}

// tell posts the turn that this member has left.
func (b *Board) tell(ctx context.Context) error {
	b.told = b.left
	if b.largeUsed <= b.told {
		b.width = 1
	}
	mine := &b.peers[b.rank]
	atomics.StoreRelease(&mine.known, b.known)
	atomics.StoreRelease(&mine.left, b.left) // both pair with the loads in lookLeft
	return b.ringWaiters(ctx)
}

// allLeft returns once all other members have left turn k.
func (b *Board) allLeft(ctx context.Context, k uint64) error {
	if err := b.reachAll(ctx); err != nil {
		return err
	}
	all := ^uint64(0)
	for m := range b.peers {
		if m == b.rank {
			continue
		}
		if err := b.awaitLeft(ctx, m, k); err != nil {
			return err
		}
		all = min(all, b.peers[m].left.Load())
	}
	b.known = max(b.known, all)
	return nil
}

// wait returns once a word is want or more. A member that waits has told which
// turn it left, except the latest one. So the member furthest behind never waits
// for a member that waits for it.
func (b *Board) wait(ctx context.Context, w *atomic.Uint64, want uint64) error {
	return b.waitBy(ctx, w, want, b.ready)
}

// waitBy is wait by a function that reports whether the word is there.
func (b *Board) waitBy(ctx context.Context, w *atomic.Uint64, want uint64, ready func() bool) error {
	if w.Load() >= want {
		return nil
	}
	if b.left >= b.told+2 {
		if err := b.tell(ctx); err != nil {
			return err
		}
	}
	b.word, b.want = w, want
	return b.await(ctx, ready)
}
