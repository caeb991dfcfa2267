package board

import (
	"context"
	"encoding/binary"
)

// meet returns once all members have posted turn k. Then each may read the boards of all.
func (b *Board) meet(ctx context.Context, k uint64) error {
	if err := b.reachAll(ctx); err != nil {
		return err
	}
	if b.n == 2 {
		if err := b.ring(ctx); err != nil {
			return err
		}
		b.expect(&b.peers[1-b.rank].lines[k%lines], k)
		if _, err := b.see(ctx, 1-b.rank, k); err != nil {
			return err
		}
		b.met(k)
		return nil
	}
	opens, err := b.arrive(ctx)
	if err != nil {
		return err
	}
	if !opens {
		return b.pass(ctx, k)
	}
	if err := b.checkAll(ctx, k); err != nil {
		return err
	}
	return b.open(ctx, k)
}

// arrive counts this member, which has posted, and reports whether it opens the gate: all
// members have arrived. In a small team the last one to come opens. In a larger one
// member 0 opens, which the last one wakes: so member 0 alone finds the boards of all. No
// member sets the counter back: each gate adds the number of members.
func (b *Board) arrive(ctx context.Context) (opens bool, err error) {
	if err := b.reach(ctx, 0); err != nil {
		return false, err
	}
	last := b.peers[0].arrived.Add(1)%uint64(b.n) == 0 // pairs with the load in wait
	if b.n <= b.lastOpens {
		return last, nil
	}
	if b.gates += uint64(b.n); b.rank == 0 {
		if err := b.reachAll(ctx); err != nil { // while the others are on their way
			return false, err
		}
		return true, b.wait(ctx, &b.peers[0].arrived, b.gates)
	}
	if last {
		b.peers[0].bell.Ring()
	}
	return false, nil
}

// checkAll compares the call of each member with this one's: the member
// that opens the gate does it for all.
func (b *Board) checkAll(ctx context.Context, k uint64) error {
	if err := b.reachAll(ctx); err != nil {
		return err
	}
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
func (b *Board) open(ctx context.Context, k uint64) error {
	b.peers[0].release.turn.Store(k) // pairs with the load in pass
	b.met(k)
	return b.ring(ctx)
}

// pass waits until the gate of turn k is open.
func (b *Board) pass(ctx context.Context, k uint64) error {
	release := &b.peers[0].release
	b.expect(release, k)
	if err := b.wait(ctx, &release.turn, k); err != nil {
		return err
	}
	b.met(k)
	return nil
}

// The member that opens a gate writes the release line's data, and all read it before
// the next gate. A result that does not fit lies in the writer's large buffer.

func (b *Board) postWriter() {
	binary.NativeEndian.PutUint64(b.peers[0].release.data[:], uint64(b.rank))
}

// writer returns the member that wrote the result.
func (b *Board) writer(ctx context.Context) (int, error) {
	writer := binary.NativeEndian.Uint64(b.peers[0].release.data[:])
	if writer >= uint64(b.n) {
		return 0, ErrCorrupt
	}
	return int(writer), b.reach(ctx, int(writer))
}
