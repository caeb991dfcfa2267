package runtime

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// central is a counter in the memory of the team's first member. Each member adds 1,
// and the last one to arrive releases all. (The sense-reversing centralized barrier of
// Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory
// Multiprocessors", 1991, with a call number for the sense.) It needs one atomic per
// member. Among the ranks of one host it is faster than dissemination, the more so the
// more ranks share a core.
//
// The last one to arrive needs the bells of all members, and in time each one is the last. In a team of
// more than lastOpens members, the last one therefore wakes the first member, and that one releases all.
//
//	arrive word:  63      48 47       40 39            16 15          0
//	              arrived    collective  part of chain    first to come
//	release word: number of the last call that everyone made
type central struct {
	team     *Team
	arrived  *atomic.Uint64
	release  *atomic.Uint64
	departed *atomic.Uint64 // a bit for each other member that uses the words no more
	bells    []wait.Ringer  // of the members that this one rings, the first member ahead of all others
}

// lastOpens is the largest number of members of which the last one to arrive releases all.
const lastOpens = treeArity + 1

func packArrival(count uint64, c team.Collective, chain uint64, first int) uint64 {
	return count<<48 | uint64(c)<<40 | chain>>40<<16 | uint64(first)&0xffff
}

// arrive counts this member in. The member that opens resets the counter, and releases the others by a word
// for which they wait.
func (b *central) arrive(ctx context.Context, key team.Key, c team.Collective) error {
	if b.arrived == nil {
		if err := b.connect(ctx); err != nil {
			return err
		}
	}
	opens, err := b.count(ctx, key, c)
	if err == nil && len(b.team.members) > lastOpens {
		opens, err = b.firstOpens(ctx, opens)
	}
	if err != nil {
		return err
	}
	if opens {
		mutant.Hesitate(mutant.Message)
		b.arrived.Store(0)
		mutant.Hesitate(mutant.Message)
		b.release.Store(key.Seq) // pairs with the waiters' load below
		for _, bell := range b.bells {
			bell.Ring()
		}
		return nil
	}
	return b.team.inner.Await(ctx, func() bool { return b.release.Load() >= key.Seq })
}

// firstOpens reports at the first member, once all have arrived, that it opens. The last one to arrive wakes it.
func (b *central) firstOpens(ctx context.Context, last bool) (opens bool, err error) {
	if b.team.rank > 0 {
		if last {
			b.bells[0].Ring()
		}
		return false, nil
	}
	n := uint64(len(b.team.members))
	return true, b.team.inner.Await(ctx, func() bool { return b.arrived.Load()>>48 == n })
}

// depart has the first member wait for the others, which tell it that they use its words no more. A
// dead member uses none. It may have died behind the call, so its death is no error. A member that gave up behind
// its arrival never departs. It breaks the team, which ends the wait.
func (b *central) depart(ctx context.Context) error {
	t := b.team
	if t.rank != 0 {
		b.departed.Or(1 << t.rank) // pairs with the loads below
		b.bells[0].Ring()
		return nil
	}
	return t.within(ctx, func(ctx context.Context) error { return t.job.fabric.Wait(ctx, b.allLeft) })
}

// allLeft reports whether all other members have departed or are dead.
func (b *central) allLeft() bool {
	t, left := b.team, b.departed.Load()
	for m := 1; m < len(t.members); m++ {
		if left>>m&1 == 0 && t.job.fabric.Fate(t.members[m]) == nil {
			return false
		}
	}
	return true
}

// count adds this rank and reports whether it arrived last.
func (b *central) count(ctx context.Context, key team.Key, c team.Collective) (last bool, err error) {
	t := b.team
	for {
		old := b.arrived.Load()
		count := old >> 48
		word := packArrival(1, c, key.Chain, t.rank)
		if count > 0 {
			first := int(old & 0xffff)
			if word = packArrival(count+1, c, key.Chain, first); word-1<<48 != old {
				return false, t.mismatch(ctx, key, c, first, team.Collective(old>>40&0xff))
			}
		}
		if b.arrived.CompareAndSwap(old, word) {
			return count+1 == uint64(len(t.members)), nil
		}
	}
}

// mismatch returns the error for two calls that met; other is a rank of the team. If
// the two are alike, an earlier call differed, which other finds.
func (t *Team) mismatch(ctx context.Context, key team.Key, c team.Collective, other int, did team.Collective) error {
	if other < 0 || other >= len(t.members) {
		other = t.rank // the word in shared memory was overwritten
	}
	if did == c && other != t.rank {
		return t.differs(ctx, key.Seq, other)
	}
	return &MismatchError{Team: t.name, Rank: t.members[t.rank], Call: c.String(),
		Other: t.members[other], OtherDid: did.String()}
}

// rings returns the world ranks of the members that this one may ring, the first member ahead of all others.
func (b *central) rings() []int {
	t := b.team
	if t.rank > 0 && len(t.members) > lastOpens {
		return t.members[:1]
	}
	return slices.Delete(slices.Clone(t.members), t.rank, t.rank+1)
}

// prepare connects, as far as that takes no message, the members that all meet at the first one, and finds its block.
// So the first barrier or short reduction does not. Each smaller team connects when its first call needs it.
func (b *central) prepare() {
	t := b.team
	if len(t.members) > lastOpens {
		t.job.fabric.ConnectNear(b.rings())
		t.first.Store(t.job.fabric.ResolveNear(t.members[0], t.region()))
	}
}

// connect maps the counter, and the bells of the members that this one may ring.
func (b *central) connect(ctx context.Context) error {
	t, rings := b.team, b.rings()
	t.job.fabric.StartPeers(rings, t.region(), false)
	var bells []wait.Ringer
	for _, rank := range rings {
		p, err := t.job.fabric.Peer(ctx, rank)
		if err != nil {
			return err
		}
		bells = append(bells, p.Bell())
	}
	leader, err := t.blockOf(ctx, 0)
	if err != nil {
		return err
	}
	b.bells = bells
	b.release = atomics.Word64(leader.Mem[releaseOffset:])
	b.departed = atomics.Word64(leader.Mem[departOffset:])
	b.arrived = atomics.Word64(leader.Mem[arriveOffset:])
	return nil
}
