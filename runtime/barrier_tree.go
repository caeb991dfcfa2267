package runtime

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
)

// tree passes flags up a tree and down again. A member waits for the members below it
// and sets its flag at the member above. It then waits for that member's flag.
// (Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory
// Multiprocessors", 1991.) It takes 2 (n - 1) messages, where dissemination takes n
// log2 n, but twice as many one after the other. It is for members that share cores,
// where the number of messages decides. It uses the flags of dissemination.
type tree struct {
	circle
	team  *Team
	mem   []byte
	arity int            // the most members below one
	above *fabric.Remote // nil until it is needed
	below []*fabric.Remote
	posts bool // some members below do not map this rank's memory
}

// treeArity is the largest number of members below a member, of which each has a line. In a star all others are
// below the first member, and their words share lines: over tcp its device alone stores there. Members that map
// memory store there themselves, and so have no star.
const treeArity = 8

// newTree returns the tree of the members of a circle.
func newTree(t *Team, mem []byte, among circle) *tree {
	b := &tree{team: t, mem: mem, circle: among, arity: treeArity}
	maps := func(m int) bool { return t.job.cards[t.members[m]].MapsHost }
	if n := len(among.members); t.inner.Crowded() && n <= starMost && !slices.ContainsFunc(among.members, maps) {
		b.arity = max(treeArity, n-1)
	}
	return b
}

// word returns the offset of the word of a member below, by its place among them.
func (b *tree) word(i int) int {
	if b.arity > treeArity {
		return belowOffset + 8*i
	}
	return belowOffset + i*lineSize
}

// arrive is the barrier: flags go up the tree, and then down.
func (b *tree) arrive(ctx context.Context, key team.Key, c team.Collective) error {
	if err := b.up(ctx, key, c); err != nil {
		return err
	}
	return b.down(ctx, key, c)
}

// up waits until all members below have arrived, then sets the flag at the member
// above.
func (b *tree) up(ctx context.Context, key team.Key, c team.Collective) error {
	if err := b.connect(ctx); err != nil {
		return err
	}
	for i := range b.below {
		if err := b.await(ctx, b.word(i), key, c, b.me*b.arity+1+i); err != nil {
			return err
		}
	}
	if b.above == nil {
		return nil
	}
	return b.above.PostFlag(ctx, fabric.Flag{Offset: b.word((b.me - 1) % b.arity), Value: flagOf(key, c)})
}

// down waits for the flag of the member above, if there is one, and passes it on by release.
func (b *tree) down(ctx context.Context, key team.Key, c team.Collective) error {
	if b.above != nil {
		if err := b.await(ctx, releaseOffset, key, c, (b.me-1)/b.arity); err != nil {
			return err
		}
	}
	return b.release(ctx, key, c)
}

// release sets the flags of the members below.
func (b *tree) release(ctx context.Context, key team.Key, c team.Collective) error {
	for _, r := range b.below {
		mutant.Hesitate(mutant.Message)
		if err := r.PostFlag(ctx, fabric.Flag{Offset: releaseOffset, Value: flagOf(key, c)}); err != nil {
			return err
		}
	}
	if b.posts && c != team.FreeTeam { // else the flags stay queued while this rank computes; Free flushes them
		b.team.inner.Progress()
	}
	return nil
}

// await waits for the flag of another member, and compares its call with this one.
func (b *tree) await(ctx context.Context, offset int, key team.Key, c team.Collective, from int) error {
	flag := atomics.Word64(b.mem[offset:])
	if err := b.team.awaitFlag(ctx, c, b.members[from], func() bool { return flag.Load()>>24 >= key.Seq }); err != nil {
		return err
	}
	return compare(ctx, b.team, flag, key, c, b.members[from])
}

// around returns the members below and above, that above last.
func (b *tree) around() (all []int) {
	first, last := b.bounds()
	for child := first; child <= last; child++ {
		all = append(all, child)
	}
	if b.me > 0 {
		all = append(all, (b.me-1)/b.arity)
	}
	return all
}

// bounds returns the first and the last member below.
func (b *tree) bounds() (first, last int) {
	return b.me*b.arity + 1, min((b.me+1)*b.arity, len(b.members)-1)
}

// told returns the members around. That above sets its flag once it has found the flag of this one.
func (b *tree) told() (ranks []int, answered int) { return b.ranks(b.team, b.around()), min(b.me, 1) }

// connect finds the memory of the members above and below. It connects to all of them at once.
func (b *tree) connect(ctx context.Context) (err error) {
	first, last := b.bounds()
	if b.above == nil && len(b.below) == 0 {
		b.start(b.team, b.around())
	}
	if b.me > 0 && b.above == nil {
		if b.above, err = b.resolve(ctx, b.team, (b.me-1)/b.arity); err != nil {
			return err
		}
	}
	for child := first + len(b.below); child <= last; child++ {
		r, err := b.resolve(ctx, b.team, child)
		if err != nil {
			return err
		}
		b.below, b.posts = append(b.below, r), b.posts || r.Mem == nil
	}
	return nil
}

// flagOf returns the flag of a call: its number, part of its chain, and its collective.
func flagOf(key team.Key, c team.Collective) uint64 {
	return key.Seq<<24 | key.Chain>>48<<8 | uint64(c)
}

// awaitFlag waits for the flag of a member.
func (t *Team) awaitFlag(ctx context.Context, c team.Collective, from int, set func() bool) error {
	if c == team.FreeTeam {
		return t.inner.AwaitLast(ctx, from, set)
	}
	return t.inner.AwaitFlag(ctx, set)
}

// compare checks the collective in a member's flag.
func compare(ctx context.Context, t *Team, flag *atomic.Uint64, key team.Key, c team.Collective, member int) error {
	v := flag.Load()
	if v>>24 != key.Seq || v == flagOf(key, c) {
		return nil
	}
	return t.mismatch(ctx, key, c, member, team.Collective(v&0xff))
}
