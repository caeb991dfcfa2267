package runtime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
)

// A stream orders a team's collective calls at this rank. Each takes the next number,
// the same at every member, and runs when all earlier calls have ended:
//
//	Barrier  Start(AllReduce)  Start(Broadcast)  Barrier
//	   1             2                 3            4       number
//	 caller        goroutine of the team          caller    run by
//
// Blocking calls run on the caller's goroutine. Started calls run on one goroutine of the team,
// which exists while there are started calls. They may also run on a goroutine that waits for them
// (stream_start.go).
//
// A call takes the mutex once, to get its key. It ends by one store to ended.
type stream struct {
	team   *Team
	own    [team.Close + 1]team.Call // descriptions of runtime's own calls, by kind
	ended  atomic.Uint64             // all calls up to this number have ended
	behind atomic.Int64              // calls that wait for their turn

	mu       sync.Mutex
	last     team.Key    // of the latest call
	past     []team.Call // the latest, by place; short at first, since most teams make few
	blocking uint64      // number of the latest blocking call; 0 if it never began
	queue    []started
	serving  bool // the goroutine runs, or later will begin it
	later    *time.Timer
	helping  int  // goroutines in RunHere that run a call
	closing  bool // this rank closes the job
	inquiry  inquiry
}

// remembered is the number of calls that a rank remembers for inquiries.
const remembered = team.Remembered

// firstPast is the number of calls for which a team has room at first.
const firstPast = 8

// init describes runtime's own calls, once for each team.
func (s *stream) init(t *Team) {
	s.team = t
	for kind := range s.own {
		s.own[kind] = team.Collective(kind).Call()
	}
}

// next gives a call its key. Precondition: the mutex is held.
func (s *stream) next(c *team.Call) team.Key {
	s.last = s.last.Next(c)
	if at := pastAt(s.last.Seq); at < len(s.past) {
		s.past[at] = *c
	} else { // the first calls
		if s.past == nil {
			s.past = make([]team.Call, 0, firstPast)
		}
		s.past = append(s.past, *c)
	}
	if !s.inquiry.armed {
		s.team.attend()
	}
	return s.last
}

// pastAt returns the place in past of the call of a number, which is not 0.
func pastAt(seq uint64) int { return int((seq - 1) % remembered) }

// remember returns the call of a number if it is among this rank's latest calls.
// Precondition: the mutex is held.
func (s *stream) remember(seq uint64) (team.Call, bool) {
	if seq == 0 || seq > s.last.Seq || s.last.Seq-seq >= remembered {
		return team.Call{}, false
	}
	return s.past[pastAt(seq)], true
}

// Begin begins a blocking collective call and returns its key once all earlier calls
// have ended. End ends the call. A rank that cannot take part tells the other members,
// which may not know the reason. No call begins behind one of this rank that has failed: Free
// relies on it.
func (s *stream) Begin(ctx context.Context, c *team.Call) (team.Key, error) {
	t := s.team
	mutant.Hesitate(mutant.Call)
	if err := t.err(); err != nil {
		return team.Key{}, t.failed(c.Name, err)
	}
	s.mu.Lock()
	if s.blocking > s.ended.Load() {
		s.mu.Unlock()
		return team.Key{}, fmt.Errorf("team %s: %w: %s began while another collective call of this rank was under way; "+
			"make them one at a time, or split a team for each goroutine", t.name, ErrMismatch, c.Name)
	}
	key := s.next(c)
	s.blocking = key.Seq
	s.mu.Unlock()
	var err error
	if s.ended.Load() != key.Seq-1 {
		err = s.awaitTurn(ctx, key.Seq)
	}
	if err == nil && t.broken.Load() != nil { // a started call of this rank has failed since
		err = t.err()
	}
	if err != nil {
		s.mu.Lock()
		s.blocking = 0
		s.mu.Unlock()
		s.ring()
		return team.Key{}, t.failed(c.Name, err)
	}
	return key, nil
}

// awaitTurn waits until all calls before seq have ended. If it fails, the team breaks:
// no later call gets its turn.
func (s *stream) awaitTurn(ctx context.Context, seq uint64) error {
	s.Hurry()
	s.behind.Add(1)
	defer s.behind.Add(-1)
	return s.team.inner.AwaitMapped(ctx, func() bool { return s.ended.Load() == seq-1 })
}

// End ends a call that Begin began. With an error it breaks the team.
func (s *stream) End(key team.Key, c *team.Call, err error) error {
	if err != nil {
		err = s.team.failed(c.Name, err)
	}
	s.end(key)
	mutant.Hesitate(mutant.Call)
	return err
}

// end gives the turn to the next call. The store pairs with the load in awaitTurn. The look
// at behind may overtake it, so waiters look again after pauses.
func (s *stream) end(key team.Key) {
	atomics.StoreRelease(&s.ended, key.Seq)
	s.ring()
}

// ring wakes the goroutines that wait for calls to end.
func (s *stream) ring() {
	if s.behind.Load() > 0 {
		s.team.job.fabric.Bell().Ring()
	}
}

// awaitIdle waits until no call is under way, on a team that is broken.
func (s *stream) awaitIdle(ctx context.Context) error {
	s.Hurry()
	s.behind.Add(1)
	defer s.behind.Add(-1)
	return s.team.job.fabric.WaitStored(ctx, s.idle)
}

// idle reports whether no call is under way. On a broken team no call begins any more.
func (s *stream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.serving && s.helping == 0 && s.blocking <= s.ended.Load()
}
