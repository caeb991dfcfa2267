package board

import (
	"context"
	"encoding/binary"
)

// meet returns once all members have posted turn k.
func (b *Board) meet(ctx context.Context, k uint64) error {
	if b.n == 2 {
		b.ring()
		b.expect(&b.peers[1-b.rank].lines[k%lines], k)
		if _, err := b.see(ctx, 1-b.rank, k); err != nil {
			return err
		}
		b.met(k)
		return nil
	}
	if !b.arrive() {
		return b.pass(ctx, k)
	}
	if err := b.checkAll(k); err != nil {
		return err
	}
	b.open(k)
	return nil
}

// arrive counts this member, which has posted, and reports whether it is the last
// to come. No member sets the counter back: each gate adds the number of members.
func (b *Board) arrive() bool { return b.arrived.Add(1)%uint64(b.n) == 0 }

// checkAll compares the call of each member with this one's: the last member to
// come does it for all.
func (b *Board) checkAll(k uint64) error {
	for m := range b.peers {
		l := &b.peers[m].lines[k%lines]
		if l.turn.Load() != k {
			return b.elsewhere(m)
		}
		if err := b.check(l, m, k); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere names the call of a member that arrived in another turn: the call of
// its latest line.
func (b *Board) elsewhere(m int) error {
	latest := &b.peers[m].lines[0]
	for i := range b.peers[m].lines {
		if l := &b.peers[m].lines[i]; l.turn.Load() > latest.turn.Load() {
			latest = l
		}
	}
	if latest.seq == b.seq && latest.chain == b.chain {
		return ErrCorrupt
	}
	return &Differs{Member: m, Seq: latest.seq, Theirs: latest.chain}
}

// open lets all members pass the gate of turn k.
func (b *Board) open(k uint64) {
	b.release.turn.Store(k) // pairs with the load in pass
	b.met(k)
	b.ring()
}

// pass waits for the last one to come.
func (b *Board) pass(ctx context.Context, k uint64) error {
	b.expect(b.release, k)
	if err := b.wait(ctx, &b.release.turn, k); err != nil {
		return err
	}
	b.met(k)
	return nil
}

// The last member to come writes the release line's data, and all read it before
// the next gate. A result that does not fit lies in the writer's large buffer.

func (b *Board) postWriter() { binary.NativeEndian.PutUint64(b.release.data[:], uint64(b.rank)) }

func (b *Board) writer() (int, error) {
	writer := binary.NativeEndian.Uint64(b.release.data[:])
	if writer >= uint64(b.n) {
		return 0, ErrCorrupt
	}
	return int(writer), nil
}
