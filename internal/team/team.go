package team

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Team is the inner part of a team at one rank.
type Team struct {
	*fabric.Fabric
	Name    string        // unique in the job
	Rank    int           // of this process in the team
	Members []int         // world ranks by team rank
	Windows atomic.Uint64 // windows made so far: the same at every member
	// Openings counts how often this rank opened each end of a pipe. Package rpipe guards it.
	Openings map[string]int
	Mapped   bool  // all members use each other's memory directly
	Hosts    []int // by team rank: members with the same number share a host
	PerCore  int   // the most members for a core of their host, rounded up
	BoundTo  int   // cores to which each member is bound; 0: all those of its host, -1: members differ
	// Path names the providers that may move the members' bytes, such as "shm+tcp", "" if
	// members have different ones.
	Path string
	// Tuned names the table of grun tune that all members have, "" if they have none or
	// different ones.
	Tuned   string
	Verbose bool // GRUN_VERBOSE=1: ranks print how the job is set up
	// Above is the [Keeper] of package collectives.
	Above atomic.Value
	// Whole ends when the team breaks or the job ends. Its cause is the reason.
	Whole context.Context

	// Sync makes a barrier that completes no operations. All members name the same
	// collective.
	Sync func(ctx context.Context, c Collective) error
	// Swap does Sync and gives all members' bytes to each, by team rank. If its error is
	// no [OutcomeUnknownError], it has failed at all members.
	Swap func(ctx context.Context, c Collective, mine []byte) ([][]byte, error)
	// Room is memory of this member for package collectives: RoomSize bytes, zero at first. It is empty if
	// this rank maps no memory of others. The rooms of all members are there before any makes a call.
	Room []byte
	// RoomsOf calls found for the room and the bell of each of members, where the members map each other's
	// memory. It connects to all of them at once. It ends with the team, and with the first error.
	RoomsOf func(ctx context.Context, members []int, found func(i int, room []byte, bell wait.Ringer) error) error
	// Extents are nil if members have to ask for the memory of messages.
	Extents Extents
	// Err returns the error of the team, nil while it is whole.
	Err func() error
	// Told returns the ranks at which the team's barrier sets flags.
	Told func() []int
	// Failed breaks the team because err ended this rank's collective call early. It
	// returns the error for the caller.
	Failed func(c Collective, err error) error

	// Calls orders the team's collective calls.
	Calls Stream
	// Differs makes a member compare its calls with those of this rank. A rank calls it
	// after it got data of another call from the member in its call of number seq. It
	// returns the error by which the team breaks.
	Differs func(ctx context.Context, seq uint64, member int) error

	uses       uses
	quarantine quarantine
}

// Remembered is the number of a team's latest calls that each rank remembers, so that members can compare
// them. Package collectives lets no member be that many calls ahead of another.
const Remembered = 256

// Recounted is the number of calls, the latest first, that a member of a team tells another one when a call takes
// long. The other remembers all of them, however far it is ahead.
const Recounted = 16

// RoomSize is three pages: more of it would take memory of teams that make no such calls.
const RoomSize = 12 << 10

// Extents are memory of each member that other members write: one extent for each of them, zero at first.
type Extents interface {
	// Region names the memory for which a rank asks if it does not know where a member's extents are.
	Region() string
	// Mine returns the extent of this member that another one writes.
	Mine(member int) ([]byte, error)
	// Of returns the extent of another member that this one writes. It waits for a connection alone.
	Of(ctx context.Context, member int) (*fabric.Remote, error)
	// Shortage returns the error by which there was no memory for what a member wrote, nil if there is none.
	Shortage() error
}

// Teams of up to MostExtents members have extents of ExtentSize bytes, of which ExtentFirst occupy memory when they are
// made. Package collectives has a channel in each.
const (
	MostExtents = 64
	ExtentSize  = ExtentFirst + 1<<20
	ExtentFirst = 8 << 10
)

// A Keeper keeps memory for a team's calls.
type Keeper interface {
	// Written returns the members to which this one has written for the team's calls, unless these were stores to
	// mapped memory or flags of the team's barrier. None of the team's calls is under way at this member.
	Written() []int
	// Release gives the memory back. Runtime calls it once, when it frees the team: none of
	// the team's calls is under way at any member, and their writes are complete.
	Release() error
}

// Await returns nil once ready is true. It returns earlier if the team breaks or ctx ends,
// with the reason.
func (t *Team) Await(ctx context.Context, ready func() bool) error {
	return t.await(ctx, wait.Manner{}, t.Err, ready)
}

// AwaitFrom is Await for members from alone, by team rank. It returns earlier only if one of
// them is gone, if all have left, or if the job or ctx ends. Without members it waits for all,
// as Await does, but returns once all others have left. The rings of members may overtake their
// stores ([wait.Stored]). With unrung it waits for stores of members, or of this rank's program,
// that may ring no bell: it finds ready true after [wait.LongestPause] at the latest.
func (t *Team) AwaitFrom(ctx context.Context, from []int, unrung bool, ready func() bool) error {
	lost := t.Err
	if len(from) > 0 {
		lost = func() error { return t.lost(from) }
	}
	if mutant.LookOnce || mutant.StoreWithoutRing || mutant.MissingWaiterCheck { // no further look mends these
		return t.await(ctx, wait.Manner{}, lost, ready)
	}
	m := wait.Stored()
	if unrung {
		m.Longest = wait.LongestPause
	}
	return t.awaitActive(ctx, m, from, lost, ready)
}

// AwaitMember is Await for a call of a member: it also returns earlier if the member has left.
func (t *Team) AwaitMember(ctx context.Context, member int, ready func() bool) error {
	return t.awaitActive(ctx, wait.Manner{}, []int{member}, t.Err, ready)
}

// AwaitFlag is Await for a flag of the team's barrier. It also returns earlier if a member refused a request of this
// rank ahead of this rank's flag: that flag is lost, and so the other one may not come.
func (t *Team) AwaitFlag(ctx context.Context, ready func() bool) error {
	return t.await(ctx, wait.Manner{}, func() error { return cmp.Or(t.Err(), t.Refusal(t.Told)) }, ready)
}

// AwaitLast is AwaitFlag for a member's flag in the team's last call. It returns earlier if that member is
// gone, but not if another one is: that one may have died behind the call.
func (t *Team) AwaitLast(ctx context.Context, member int, ready func() bool) error {
	lost := func() error {
		if err := t.lost([]int{member}); err != nil {
			return err
		}
		return cmp.Or(context.Cause(t.Whole), t.Refusal(t.Told))
	}
	return t.await(ctx, wait.Manner{}, lost, ready)
}

// lost returns the error of the first of members that is gone, or the end of the job.
func (t *Team) lost(members []int) error {
	for _, m := range members {
		if err := t.Fate(t.Members[m]); err != nil {
			return err
		}
	}
	return nil
}

// Crowded reports whether members share cores, on some host.
func (t *Team) Crowded() bool { return t.PerCore > 1 }

// AwaitMapped is Await for words that members, or this rank, store by atomics.StoreRelease and
// ring for: their ring may overtake the store ([wait.Stored]).
func (t *Team) AwaitMapped(ctx context.Context, ready func() bool) error {
	return t.await(ctx, wait.Stored(), t.Err, ready)
}

// WaitStored is the fabric's for words of members.
func (t *Team) WaitStored(ctx context.Context, ready func() bool) error {
	return t.WaitWith(ctx, wait.Stored(), ready)
}

// WaitWith is the fabric's for words of members. Members that share cores look once before they
// yield: a member for which they wait may need this core. With 8 ranks on 2 cores and 8 bytes, an
// exchange on a ring takes 8 us instead of 14. An all-to-all takes 8 us instead of 10.
func (t *Team) WaitWith(ctx context.Context, m wait.Manner, ready func() bool) error {
	m.Calling = m.Calling || t.Crowded()
	return t.Fabric.WaitWith(ctx, m, ready)
}

// await is Await in the manner m. lost returns the reason for an early end, nil while there
// is none.
func (t *Team) await(ctx context.Context, m wait.Manner, lost func() error, ready func() bool) error {
	seen := t.Health()
	bad := lost()
	err := t.WaitWith(ctx, m, func() bool {
		if bad != nil || ready() {
			return true
		}
		if now := t.Health(); now != seen {
			seen, bad = now, lost()
		}
		return bad != nil
	})
	if err == nil && bad != nil && ready() {
		return nil
	}
	return errors.Join(bad, err)
}
