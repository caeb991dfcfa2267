package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Team is an ordered group of ranks, numbered from 0. All members make its collective
// calls in the same order, one at a time.
type Team struct {
	handle  // for packages of this module
	job     *Job
	name    string
	members []int // world ranks
	rank    int
	inner   *team.Team

	stream  stream
	barrier barrier
	block   arena.Block                   // the barrier's memory
	known   *fabric.Region                // block, as other members find it
	first   atomic.Pointer[fabric.Remote] // block of the first member, nil until it is found in mapped memory
	places  []*fabric.Place               // of the members' blocks; nil where a member has to send a request
	gathers uint64                        // gathers of choices by mapped memory so far, the same at every member

	broken atomic.Pointer[TeamError]
	whole  context.Context // ends when the team breaks or the job does
	end    context.CancelCauseFunc
}

// handle embeds [team.Handle] under a name that go doc does not show.
type handle = team.Handle

// teamCard holds what ranks exchange of themselves when they make the world. All teams go by it.
type teamCard struct {
	Site  *siteCard `json:",omitempty"` // nil once the job has settled
	Cores int       // cores of this rank's host for its ranks
	Bound int       `json:",omitempty"` // cores to which this rank is bound; 0: all those of its host
	Path  string    // the providers that may move this rank's bytes
	Tuned string    `json:",omitempty"` // names this rank's table of grun tune
	// Mapped: this rank maps the memory of all members. MapsHost: it may map that of the
	// members on its host.
	Mapped, MapsHost bool
	Atomics          string // the processor that applies them, see WithAtomics
	Err              string // why this rank could not prepare
}

// draft returns a team before its members meet. While its members are unknown, members
// holds all that may become members.
func (j *Job) draft(name string, members []int) *Team {
	t := &Team{job: j, name: name}
	t.whole, t.end = context.WithCancelCause(j.aborted)
	t.inner = &team.Team{Fabric: j.fabric, Name: name, Openings: map[string]int{}, Verbose: j.opts.verbose,
		Whole: t.whole, Sync: t.sync, Swap: t.swap, RoomsOf: t.roomsOf, Err: t.err, Told: t.allTold,
		Failed: func(c team.Collective, err error) error { return t.failed(c.String(), err) },
		Calls:  &t.stream, Differs: t.differs}
	t.handle = team.NewHandle(t.inner)
	t.stream.init(t)
	t.setMembers(members)
	return t
}

// setMembers sets the members, once Split knows them.
func (t *Team) setMembers(members []int) {
	t.members, t.rank = members, slices.Index(members, t.job.fabric.Rank())
	t.inner.Members, t.inner.Rank = t.members, t.rank
	t.places = make([]*fabric.Place, len(members))
}

// makeWorld completes the draft of the team of all ranks. The function exchange gives each member's card to
// all, and returns their cards.
func (t *Team) makeWorld(ctx context.Context, exchange func(mine []byte) ([][]byte, error)) (*Team, error) {
	j := t.job
	bad := t.prepare(ctx)
	card := teamCard{Cores: j.cores, Bound: j.bound, Path: strings.Join(j.fabric.Providers(), "+"),
		Mapped: j.fabric.MapsAll(), MapsHost: j.fabric.MapsHost(), Atomics: j.opts.atomics}
	own, err := tuned.Of(j.fabric)
	if bad = cmp.Or(bad, err); err == nil {
		card.Tuned = own.Mark
	}
	card.Site = j.siteCard(own)
	if bad != nil {
		card.Err = bad.Error()
	}
	cards, err := t.meet(card, exchange)
	if err == nil && bad == nil {
		err = j.settle(cards)
	}
	if err = cmp.Or(bad, err); err == nil {
		err = t.settle(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(t.failed(team.Split.String(), err), t.discard())
	}
	t.open()
	return t, nil
}

// open has the team make calls, and takes in its break if this rank has heard of that.
func (t *Team) open() {
	t.barrier = newBarrier(t, t.block)
	if t.hasExtents() {
		t.inner.Extents = extents{t}
	}
	j := t.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.teams[t.name] = t
	if e := j.broken[t.name]; e != nil {
		delete(j.broken, t.name)
		t.breaks(e)
	}
}

// settle derives the team's topology from its members' cards. Members map each other's memory if those of a
// larger team do. If they may, but the job has other providers too, they first try.
func (t *Team) settle(ctx context.Context, mapped bool) error {
	cards := make([]*teamCard, len(t.members))
	for i, rank := range t.members {
		cards[i] = t.job.cards[rank]
	}
	t.inner.Hosts, t.inner.Mapped = t.job.fabric.HostsOf(t.members), mapped || allMapped(cards)
	t.inner.PerCore = perCore(t.inner.Hosts, cards)
	t.inner.BoundTo = common(cards, func(c *teamCard) int { return c.Bound }, -1)
	t.inner.Path = common(cards, func(c *teamCard) string { return c.Path }, "")
	t.inner.Tuned = common(cards, func(c *teamCard) string { return c.Tuned }, "")
	if t.inner.Mapped || !t.mayMap(cards) {
		return nil
	}
	tried, err := t.meet(teamCard{Mapped: t.mapsMembers(ctx)}, func(mine []byte) ([][]byte, error) {
		texts, err := t.job.client.Exchange(ctx, t.region()+"/mapped", t.members, mine)
		return texts, explain(err)
	})
	t.inner.Mapped = err == nil && allMapped(tried)
	return err
}

// prepare allocates and publishes this rank's part of the team's barrier, and its room behind that.
func (t *Team) prepare(ctx context.Context) (err error) {
	size := roomOffset
	if t.job.fabric.MapsHost() {
		size = roomOffset + team.RoomSize
	}
	if t.job.fabric.OnDemand() {
		t.block, err = t.job.fabric.Arena().AllocExtents(size, min(len(t.members), team.MostExtents), team.ExtentSize, team.ExtentFirst)
	} else {
		t.block, err = t.job.fabric.Arena().Alloc(size)
	}
	if err != nil {
		return err
	}
	t.inner.Room = t.block.Bytes[roomOffset:]
	t.known, err = t.job.fabric.Register(ctx, t.region(), t.block.Memory)
	return err
}

// giveUp discards a team split from parent after err at this rank. Members that have made
// the team use this rank's memory until they learn of the failure.
func (t *Team) giveUp(parent *Team, err error) error {
	if !team.OutcomeUnknown(err) {
		return t.discard()
	}
	t.end(nil)
	parent.inner.Quarantine(t.known, t.block)
	return nil
}

// discard takes back the memory from prepare, for a team that was not made or is freed.
func (t *Team) discard() error {
	t.end(nil)
	err := t.job.fabric.GiveBackKept(t.known, t.block)
	t.known, t.block, t.places = nil, arena.Block{}, nil
	return err
}

// region returns the name of the team's barrier memory, the same at every member.
func (t *Team) region() string { return "team/" + t.name }

// roomsOf finds the rooms of members in the regions of their barrier memory. Most calls look for that of the first
// member, which Split has found.
func (t *Team) roomsOf(ctx context.Context, members []int, found func(i int, room []byte, bell wait.Ringer) error) error {
	find := func(ctx context.Context) error {
		for i, m := range members {
			r, err := t.blockOf(ctx, m)
			if err == nil {
				err = found(i, r.Mem[min(len(r.Mem), roomOffset):], r.Peer.Bell())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if len(members) == 1 && members[0] == 0 && t.first.Load() != nil {
		return find(ctx)
	}
	ranks := make([]int, len(members))
	for i, m := range members {
		ranks[i] = t.members[m]
	}
	t.job.fabric.StartPeers(ranks, t.region(), false)
	return t.within(ctx, find)
}

// blockOf finds a member's block where the members map each other's memory. It remembers that of the first
// member, which most calls use.
func (t *Team) blockOf(ctx context.Context, member int) (*fabric.Remote, error) {
	if r := t.first.Load(); r != nil && member == 0 {
		return r, nil
	}
	r, err := t.job.fabric.Resolve(ctx, t.members[member], t.region())
	if err == nil && member == 0 {
		t.first.Store(r)
	}
	return r, err
}

// meet exchanges cards, and returns those of all members. It fails at all members if
// one could not prepare.
func (t *Team) meet(card teamCard, exchange func(mine []byte) ([][]byte, error)) ([]*teamCard, error) {
	mine, err := json.Marshal(card)
	if err != nil {
		return nil, err
	}
	texts, err := exchange(mine)
	if err != nil {
		return nil, err
	}
	cards := make([]*teamCard, len(texts))
	for i, text := range texts {
		if i > 0 && bytes.Equal(text, texts[i-1]) { // most cards are alike
			cards[i] = cards[i-1]
			continue
		}
		other := &teamCard{}
		cards[i] = other
		if err := json.Unmarshal(text, other); err != nil {
			return nil, fmt.Errorf("team %s: card of rank %d: %w", t.name, t.members[i], err)
		}
		if other.Err != "" && i != t.rank {
			return nil, fmt.Errorf("team %s: rank %d: %s", t.name, t.members[i], other.Err)
		}
		if other.Atomics != card.Atomics {
			return nil, fmt.Errorf("team %s: %w: atomics by %q at rank %d, by %q at rank %d; set GRUN_ATOMICS for all",
				t.name, ErrMismatch, card.Atomics, t.members[t.rank], other.Atomics, t.members[i])
		}
	}
	return cards, nil
}

// explain turns a bootstrap error into one of this package.
func explain(err error) error {
	var left *bootstrap.AbandonedError
	if errors.As(err, &left) {
		return &team.OutcomeUnknownError{Err: explain(left.Cause)}
	}
	var dead *bootstrap.PeerDeadError
	if e := hostLost(err); e != nil {
		return e
	}
	switch {
	case errors.Is(err, bootstrap.ErrLost):
		return fmt.Errorf("%w (%w)", ErrLauncherLost, err)
	case errors.Is(err, bootstrap.ErrClosed):
		return fmt.Errorf("%w (%w)", ErrClosed, err)
	case !errors.As(err, &dead):
		return err
	}
	kind := ErrRankDead
	if dead.Left {
		kind = ErrClosed
	}
	return &RankError{Rank: dead.Rank, Kind: kind, Cause: dead.Cause}
}

// Rank returns this rank's number in the team, -1 for a nil team. Kind: local.
func (t *Team) Rank() int {
	if t == nil {
		return -1
	}
	return t.rank
}

// Size returns the number of ranks in the team, 0 for a nil team. Kind: local.
func (t *Team) Size() int {
	if t == nil {
		return 0
	}
	return len(t.members)
}

// Name returns the team's name, the same at every member. Kind: local.
func (t *Team) Name() string {
	if t == nil {
		return "(none)"
	}
	return t.name
}

// WorldRank returns the number in the world of the team's rank r. Kind: local.
func (t *Team) WorldRank(r int) (int, error) {
	if r < 0 || r >= t.Size() {
		return 0, fmt.Errorf("team %s: rank %d: %w [0, %d)", t.Name(), r, ErrRange, t.Size())
	}
	return t.members[r], nil
}

// Translate returns the number that the team's rank r has in the team to of the same job,
// [ErrTeam] if it is no member. Kind: local.
func (t *Team) Translate(r int, to *Team) (int, error) {
	world, err := t.WorldRank(r)
	if err != nil {
		return 0, err
	}
	if to != nil && to.job == t.job {
		if i := slices.Index(to.members, world); i >= 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("team %s: rank %d of team %s: %w", to.Name(), r, t.Name(), ErrTeam)
}

// Barrier returns when all members have called it. It completes no operations:
// use a window's Fence for that. Kind: collective.
func (t *Team) Barrier(ctx context.Context) error { return t.sync(ctx, team.Barrier) }

// Exchange returns every member's bytes, by team rank. The bytes go through the
// launcher: use Exchange for setup. Kind: collective.
func (t *Team) Exchange(ctx context.Context, mine []byte) ([][]byte, error) {
	all, err := t.swap(ctx, team.Exchange, mine)
	for i, theirs := range all { // members with the same bytes share them
		all[i] = bytes.Clone(theirs)
	}
	return all, err
}
