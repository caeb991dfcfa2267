package runtime

import (
	"context"
	"math"
	"time"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// BreakInSilence breaks a team at this rank as a failed call does, but loses the
// messages to the other members. With unmade, the rank forgets the team, as if it could
// not make it.
func BreakInSilence(t *Team, cause error, unmade bool) {
	m := newBreakMessage(&TeamError{Team: t.name, Rank: t.members[t.rank], Call: "Barrier", Reason: cause, Cause: cause.Error()})
	e := m.err()
	t.breaks(e)
	if unmade {
		t.job.mu.Lock()
		delete(t.job.teams, t.name)
		t.job.mu.Unlock()
	}
	t.job.remember(e)
}

// NameOf returns the name of a team.
func NameOf(t *Team) string { return t.name }

// NextSplit returns the name of the team that the next call makes, if it is a Split with color 0.
func NextSplit(t *Team) string { return splitName(t.name, t.stream.ended.Load()+1, 0) }

// ToldBroken has a message come that a team is broken.
func ToldBroken(j *Job, name string) {
	j.toldBroken(&breakMessage{Team: name, Call: "Barrier", Kind: "dead"})
}

// BrokenTeams returns the number of unknown teams whose errors j remembers.
func BrokenTeams(j *Job) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.broken)
}

// TreeArity is the largest number of members below a member in the tree of a barrier.
const TreeArity = treeArity

// WithExpect has a rank expect for a time that another one connects both.
func WithExpect(d time.Duration) Option {
	return func(o *options) error {
		o.expect = d
		return nil
	}
}

// KnowsFirst reports whether this rank knows the block of the team's first member, in mapped memory.
func KnowsFirst(t *Team) bool { return t.first.Load() != nil }

// Arrived returns how many members have arrived in the call that the team's center counts.
func Arrived(t *Team) int { return int(t.barrier.(*central).arrived.Load() >> 48) }

// FlagOfAll returns the number of the latest call for which all others have set their flags at the first member of a star.
func FlagOfAll(first *Team) uint64 {
	b, least := first.barrier.(*tree), uint64(math.MaxUint64)
	for i := range len(first.members) - 1 {
		least = min(least, atomics.Word64(b.mem[b.word(i):]).Load()>>24)
	}
	return least
}

// CallsOf returns the number of requests that a rank made through the launcher.
func CallsOf(j *Job) int64 { return j.calls.Load() }

// Postpone has the goroutine of a team begin an hour later, if it was to begin later and has
// not begun. It reports whether it did so.
func Postpone(t *Team) bool {
	s := &t.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pending() {
		return false
	}
	s.later.Reset(time.Hour)
	return true
}

// EndUnheard ends the blocking call of a team that is under way. Its ring comes before the
// waiting goroutines can hear it.
func EndUnheard(t *Team, key team.Key) { atomics.StoreRelease(&t.stream.ended, key.Seq) }

// Waits reports whether a call of a team waits for its turn.
func Waits(t *Team) bool { return t.stream.behind.Load() > 0 }

// HasOneCore makes j a rank with one core.
func HasOneCore(j *Job) { j.oneCore = true }

// Silence has a member of a pair ring no bell at its next barriers.
func Silence(ctx context.Context, t *Team) error {
	b := t.barrier.(*pair)
	if err := b.connect(ctx); err != nil {
		return err
	}
	b.bell = silent{}
	return nil
}

type silent struct{}

func (silent) Ring() {}

// MeetInTree has a team of mapped memory meet in a tree if it has more than TreeArity + 1 members, as those do
// that have a core each.
func MeetInTree(t *Team) {
	t.inner.PerCore = 1
	t.barrier = newBarrier(t, t.block)
}

// GiveUpRelease has a member of a tree give its next Split up once others know that all choices are there. It
// has not set the flags of the members below then.
func GiveUpRelease(t *Team, cancel context.CancelFunc) {
	t.barrier = &quitter{t.barrier.(*tree), cancel}
}

type quitter struct {
	*tree
	cancel context.CancelFunc
}

func (b *quitter) arrive(ctx context.Context, key team.Key, c team.Collective) error {
	b.team.barrier = b.tree // in the call behind it
	first, err := b.resolve(ctx, b.team, 0)
	if err == nil {
		err = b.up(ctx, key, c)
	}
	if err == nil {
		outcome := atomics.Word64(first.Mem[outcomeOffset:])
		// No member rings behind the outcome, so AwaitMapped looks again.
		err = b.team.inner.AwaitMapped(ctx, func() bool { return outcome.Load() == key.Seq<<1|1 })
	}
	if err == nil {
		b.cancel()
		err = ctx.Err()
	}
	return err
}

// Misdirect has a member's barrier set its flags in the regions of a name at the same members. It has met before.
func Misdirect(ctx context.Context, t *Team, region string) error {
	var flags []**fabric.Remote
	tell := func(remotes []*fabric.Remote) {
		for i := range remotes {
			flags = append(flags, &remotes[i])
		}
	}
	switch b := t.barrier.(type) {
	case *tree:
		flags = append(flags, &b.above)
		tell(b.below)
	case *dissemination:
		tell(b.partners)
	case *led:
		tell(b.among.partners)
	}
	for _, r := range flags {
		if *r == nil { // none is above the first member
			continue
		}
		other, err := t.job.fabric.Resolve(ctx, (*r).Peer.Rank(), region)
		if err != nil {
			return err
		}
		*r = other
	}
	return nil
}

// Remembers returns whether this rank remembers the call of a number, and its name.
func Remembers(t *Team, seq uint64) (name string, ok bool) {
	s := &t.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.remember(seq)
	return c.Name, ok
}
