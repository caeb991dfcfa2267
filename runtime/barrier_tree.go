package runtime

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// tree passes up a tree and down again: a member waits for those below it, tells the
// one above it, and waits for that. (Mellor-Crummey and Scott, "Algorithms for
// Scalable Synchronization on Shared-Memory Multiprocessors", 1991.) It takes
// 2 (n - 1) messages, where dissemination takes n log2 n, but twice as many behind
// one another: it is for members that share cores, where the messages' cost is what
// they wait for. Its flags are those of dissemination.
type tree struct {
	team  *Team
	mem   []byte
	above *fabric.Remote // nil until it is needed
	below []*fabric.Remote
}

// treeArity is how many members a member has below it at most. Each has a word.
const treeArity = 8

func (b *tree) arrive(ctx context.Context, seq uint64, c fabric.Collective) error {
	if err := b.connect(ctx); err != nil {
		return err
	}
	me, value := b.team.rank, seq<<24|mark(b.team, c)
	for i := range b.below {
		if err := b.await(ctx, roundsOffset+i*lineSize, seq, c, me*treeArity+1+i); err != nil {
			return err
		}
	}
	if b.above != nil {
		slot := (me - 1) % treeArity
		if err := b.above.PostFlag(ctx, fabric.Flag{Offset: roundsOffset + slot*lineSize, Value: value}); err != nil {
			return err
		}
		if err := b.await(ctx, releaseOffset, seq, c, (me-1)/treeArity); err != nil {
			return err
		}
	}
	for _, r := range b.below {
		if err := r.PostFlag(ctx, fabric.Flag{Offset: releaseOffset, Value: value}); err != nil {
			return err
		}
	}
	if len(b.below) > 0 { // or the flags wait for company, while this rank computes
		b.team.inner.Progress()
	}
	return nil
}

// await waits for the flag of another member, and compares its call with this one.
func (b *tree) await(ctx context.Context, offset int, seq uint64, c fabric.Collective, member int) error {
	flag := atomics.Word64(b.mem[offset:])
	if err := b.team.inner.Await(ctx, func() bool { return flag.Load()>>24 >= seq }); err != nil {
		return err
	}
	return compare(ctx, b.team, flag, seq, c, member)
}

// connect finds the memory of the members above and below.
func (b *tree) connect(ctx context.Context) (err error) {
	me := b.team.rank
	if me > 0 && b.above == nil {
		if b.above, err = b.resolve(ctx, (me-1)/treeArity); err != nil {
			return err
		}
	}
	for child := me*treeArity + 1 + len(b.below); child <= min((me+1)*treeArity, len(b.team.members)-1); child++ {
		r, err := b.resolve(ctx, child)
		if err != nil {
			return err
		}
		b.below = append(b.below, r)
	}
	return nil
}

func (b *tree) resolve(ctx context.Context, member int) (*fabric.Remote, error) {
	return b.team.job.fabric.Resolve(ctx, b.team.members[member], b.team.region())
}

// mark is what members compare of a call and those before.
func mark(t *Team, c fabric.Collective) uint64 { return t.stream.met>>48<<8 | uint64(c) }

// compare looks at the collective of a member whose flag came.
func compare(ctx context.Context, t *Team, flag *atomic.Uint64, seq uint64, c fabric.Collective, member int) error {
	v := flag.Load()
	if v>>24 != seq || v&0xffffff == mark(t, c) {
		return nil
	}
	return t.mismatch(ctx, seq, c, member, fabric.Collective(v&0xff))
}
