package runtime

import (
	"context"
	"math/bits"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
)

// dissemination takes ceil(log2 n) rounds. In round k, each member sets a flag at the
// member 2^k places on. It then waits for the flag of the member 2^k places back.
// (Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization", 1988.) A
// flag holds the call's number and collective. It only grows, so a member that is one
// call ahead does no harm.
//
//	flag: 63      24 23           8 7          0
//	      call number part of chain collective
type dissemination struct {
	circle
	team     *Team
	mem      []byte
	partners []*fabric.Remote // by round
}

func newDissemination(t *Team, mem []byte, among circle) *dissemination {
	return &dissemination{circle: among, team: t, mem: mem, partners: make([]*fabric.Remote, bits.Len(uint(len(among.members)-1)))}
}

// arrive sends a flag to one partner in each round, and waits for the flag of another one.
func (b *dissemination) arrive(ctx context.Context, key team.Key, c team.Collective) error {
	n, there := len(b.members), false
	for round := range b.partners {
		mutant.Hesitate(mutant.Message)
		partner, err := b.partner(ctx, round)
		if err != nil {
			return err
		}
		offset := roundsOffset + round*lineSize
		if err := partner.PostFlag(ctx, fabric.Flag{Offset: offset, Value: flagOf(key, c)}); err != nil {
			return err
		}
		flag := atomics.Word64(b.mem[offset:])
		there = flag.Load()>>24 >= key.Seq
		from := b.members[((b.me-1<<round)%n+n)%n]
		if err := b.team.awaitFlag(ctx, c, from, func() bool { return flag.Load()>>24 >= key.Seq }); err != nil {
			return err
		}
		if err := compare(ctx, b.team, flag, key, c, from); err != nil {
			return err
		}
	}
	if there { // no wait has flushed this rank's last flag, which would stay queued while the rank computes
		b.team.inner.Progress()
	}
	return nil
}

// told returns the partners. None of them answers.
func (b *dissemination) told() (ranks []int, answered int) {
	which := make([]int, len(b.partners))
	for round := range which {
		which[round] = b.ahead(round)
	}
	return b.ranks(b.team, which), 0
}

// ahead returns the member that this one signals in a round.
func (b *dissemination) ahead(round int) int { return (b.me + 1<<round) % len(b.members) }

// partner returns the memory of the member that this one signals in a round. It connects on first
// use.
func (b *dissemination) partner(ctx context.Context, round int) (*fabric.Remote, error) {
	if b.partners[round] == nil {
		r, err := b.resolve(ctx, b.team, b.ahead(round))
		if err != nil {
			return nil, err
		}
		b.partners[round] = r
	}
	return b.partners[round], nil
}
